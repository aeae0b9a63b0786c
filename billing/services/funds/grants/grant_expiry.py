"""Expiry of grants: the rest lapses once all earlier usage is invoiced."""

from datetime import datetime, timedelta

import structlog
from django.db import DatabaseError, transaction
from django.db.models import Exists, OuterRef

from billing.models import BillingPeriod, Grant, GrantExpiry
from billing.models.periods import OPEN
from billing.services.funds.grants import grant_balances
from billing.services.ledger import posting
from billing.services.periods import billing_periods
from tenants.models import Tenant
from tenants.services.rls import system_scope, tenant_scope

log = structlog.get_logger(__name__)
JUST_BEFORE = timedelta(seconds=1)
BATCH_SIZE = 500


def expire_due_grants(*, now: datetime) -> int:
    """Expire every grant that can pay for nothing any more; return how many.

    Repeating it ends none. It runs after the months that are over were closed: usage before a grant's
    expiry is in one of them.
    """
    unfinished = BillingPeriod.objects.filter(
        tenant=OuterRef("tenant"), status=OPEN, span__startswith__lt=OuterRef("expires_at")
    )
    with system_scope():
        over = Grant.objects.filter(~Exists(unfinished), lapse=None, expires_at__lte=now)
        due = list(over.order_by("expires_at").values_list("pk", "tenant_id", "expires_at")[:BATCH_SIZE])
    ended = 0
    for grant_id, tenant_id, ends in due:
        try:
            with tenant_scope(tenant_id):
                ended += _expire_grant(grant_id, Tenant.objects.get(pk=tenant_id), ends or now, now)
        except DatabaseError as error:
            log.error("grant could not be expired", grant=grant_id, why=str(error).strip())
    return ended


@transaction.atomic
def _expire_grant(grant_id: str, tenant: Tenant, ends: datetime, now: datetime) -> bool:
    last = ends - JUST_BEFORE
    if not BillingPeriod.objects.filter(tenant=tenant, span__contains=last).exclude(status=OPEN).exists():
        billing_periods.ensure_periods(
            tenant, since=last, until=last
        )  # that month does not exist or is open: it must be closed first
        return False
    grant_balances.lock_grants(tenant.pk)  # after the months, as when one is closed
    grant = Grant.objects.filter(pk=grant_id, lapse=None).first()
    if grant is None:
        return False  # another worker was faster
    GrantExpiry.objects.create(
        tenant=tenant,
        grant=grant,
        minor=grant_balances.remaining_by_grant(tenant.pk, [grant.pk]).get(grant.pk, 0),
        at=now,
    )
    posting.post_grant_expiries([grant.pk], now=now)
    return True
