"""What happened and is not in the books: written by an older release, which knew of none. Booked as it happened."""

from collections import defaultdict
from datetime import datetime

import structlog
from django.db import DatabaseError

from billing.services.ledger import books, posting
from tenants.services.walls import as_sweep, as_tenant

log = structlog.get_logger(__name__)
POST = {
    "credited": posting.credited,
    "finalized": posting.finalized,
    "paid": posting.paid,
    "refunded": posting.refunded,
    "unrefunded": posting.unrefunded,
    "voided": posting.voided,
}


def post_missing(*, now: datetime) -> int:
    """Book it, each tenant's in its own transaction; return how many transfers that took. Repeating it takes none.

    What one tenant's rows make impossible keeps nobody else's waiting.
    """
    with as_sweep():
        found = books.missing()
    tenants: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for tenant_id, what, subject in found:
        tenants[tenant_id][what].append(subject)
    written = 0
    for tenant_id, subjects in tenants.items():
        try:
            with as_tenant(tenant_id):
                # In this order: what is drawn from a balance, and what is reversed, must be there.
                written += sum(POST[what](subjects[what], now=now) for what in POST if what in subjects)
        except (DatabaseError, posting.Contradiction) as error:
            log.error("the books lack what happened", tenant=tenant_id, why=str(error).strip())
    return written
