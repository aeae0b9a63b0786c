"""The end of a grant: what is left of it is nobody's, once all that was used before its end is on final invoices."""

from datetime import datetime, timedelta

import structlog
from django.db import DatabaseError, transaction
from django.db.models import Exists, OuterRef

from billing.models import BillingPeriod, Grant, GrantLapse
from billing.models.periods import OPEN
from billing.services import periods
from billing.services.grants import purse
from billing.services.ledger import posting
from tenants.models import Tenant
from tenants.services.walls import as_sweep, as_tenant

log = structlog.get_logger(__name__)
JUST_BEFORE = timedelta(seconds=1)
BATCH = 500


def lapse_due(*, now: datetime) -> int:
    """End every grant that can pay for nothing any longer; return how many. Repeating it ends none.

    After the months that are over were closed: what was used before a grant's end is in one of them.
    """
    unfinished = BillingPeriod.objects.filter(
        tenant=OuterRef("tenant"), status=OPEN, span__startswith__lt=OuterRef("expires_at")
    )
    with as_sweep():
        over = Grant.objects.filter(~Exists(unfinished), lapse=None, expires_at__lte=now)
        due = list(over.order_by("expires_at").values_list("pk", "tenant_id", "expires_at")[:BATCH])
    ended = 0
    for grant_id, tenant_id, ends in due:
        try:
            with as_tenant(tenant_id):
                ended += _lapse(grant_id, Tenant.objects.get(pk=tenant_id), ends or now, now)
        except DatabaseError as error:
            log.error("a grant could not be ended", grant=grant_id, why=str(error).strip())
    return ended


@transaction.atomic
def _lapse(grant_id: str, tenant: Tenant, ends: datetime, now: datetime) -> bool:
    last = ends - JUST_BEFORE
    if not BillingPeriod.objects.filter(tenant=tenant, span__contains=last).exclude(status=OPEN).exists():
        periods.ensure(
            tenant, since=last, until=last
        )  # nothing of it is charged, perhaps not yet: it is closed first
        return False
    purse.alone(tenant.pk)  # after the months, as whoever closes one
    grant = Grant.objects.filter(pk=grant_id, lapse=None).first()
    if grant is None:
        return False  # another worker was faster
    GrantLapse.objects.create(
        tenant=tenant, grant=grant, minor=purse.left(tenant.pk, [grant.pk]).get(grant.pk, 0), at=now
    )
    posting.lapsed([grant.pk], now=now)
    return True
