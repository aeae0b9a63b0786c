"""Post events that are missing in the ledger, as of when they happened.

An older release that ran during an upgrade may have written them without a posting.
"""

from collections import defaultdict
from datetime import datetime

import structlog
from django.db import DatabaseError

from billing.services.ledger import ledger_balances, posting
from tenants.services.rls import system_scope, tenant_scope

log = structlog.get_logger(__name__)
POSTINGS = {
    "credited": posting.post_credit_notes,
    "finalized": posting.post_invoices,
    "paid": posting.post_payments,
    "refunded": posting.post_refunds,
    "unrefunded": posting.reverse_refunds,
    "voided": posting.reverse_invoices,
}


def post_missing(*, now: datetime) -> int:
    """Post missing events, one transaction per tenant; return the number of transfers.

    Repeating it posts none. A tenant whose rows cannot be posted does not block the others.
    """
    with system_scope():
        found = ledger_balances.missing_events()
    tenants: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for tenant_id, what, subject in found:
        tenants[tenant_id][what].append(subject)
    written = 0
    for tenant_id, subjects in tenants.items():
        try:
            with tenant_scope(tenant_id):
                # In this order: a balance must be posted before it is drawn, a transfer before it is reversed.
                written += sum(POSTINGS[what](subjects[what], now=now) for what in POSTINGS if what in subjects)
        except (DatabaseError, posting.ConflictingTransfer) as error:
            log.error("ledger posting was missing", tenant=tenant_id, why=str(error).strip())
    return written
