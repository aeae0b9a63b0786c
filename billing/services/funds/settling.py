"""Holds follow their leases: they shrink to what is charged, and what a lease did not use is free again."""

from datetime import datetime, timedelta

import structlog
from django.db import connection, transaction
from django.db.models import F, Q

from billing.models import Hold
from billing.services.funds.holds import BudgetExceeded, set_aside
from billing.services.funds.needs import charged_of, needed
from broker.domain.states import EndReason, LeaseState
from broker.models import Lease
from broker.services.leases import ending
from tenants.services.quotas import hold_off_new
from tenants.services.walls import as_sweep, as_tenant

log = structlog.get_logger(__name__)
LOOK_EVERY = timedelta(minutes=5)
MOST = 500  # holds that are looked at in one go
OVER = (LeaseState.RELEASING, LeaseState.RELEASED, LeaseState.FAILED)
WAITS = (LeaseState.REQUESTED, LeaseState.QUEUED, LeaseState.PROVISIONING)
USED = """
SELECT coalesce(sum(extract(epoch FROM n.at - t.at)::bigint * t.quantity), 0)::bigint
  FROM broker_transition t JOIN broker_transition n ON n.lease_id = t.lease_id AND n.seq = t.seq + 1
 WHERE t.lease_id = %s AND t.after = 'active'
"""


def look_again(*, now: datetime) -> int:
    """Bring holds up to what became of their leases; return how many were looked at.

    What waits and has no room any longer, since a price rose or its month began, is ended. What runs is not: what it
    costs more is taken all the same, and said aloud.
    """
    stale = Q(looked_at__lte=now - LOOK_EVERY) | Q(lease__at__gt=F("looked_at"))
    with as_sweep():
        due = Hold.objects.filter(stale, settled_at=None).order_by("looked_at")
        found = list(due.values_list("lease_id", "tenant_id")[:MOST])
    for lease_id, tenant_id in found:
        with as_tenant(tenant_id):
            _look(lease_id, tenant_id, now)
    return len(found)


def _look(lease_id: str, tenant_id: str, now: datetime) -> None:
    try:
        with transaction.atomic():
            hold_off_new(tenant_id)
            rows = Lease.objects.select_for_update(of=("self",)).select_related("project__tenant", "offering")
            lease = rows.get(pk=lease_id)
            _bring_up(lease, now)
    except BudgetExceeded as refusal:
        log.warning("a lease that waits has no budget any longer", lease_id=lease_id, why=refusal.detail)
        ending.release(
            Lease.objects.select_related("offering").get(pk=lease_id), reason=EndReason.BUDGET, now=now
        )


def _bring_up(lease: Lease, now: datetime) -> None:
    with connection.cursor() as cursor:  # first, so that no more can be charged than was seen to be used
        cursor.execute(USED, [lease.pk])
        (used,) = cursor.fetchone()
    charged, state = charged_of(lease.pk), LeaseState(lease.state)
    if state in WAITS:
        set_aside(lease, needed(lease, charged, now=now), charged, now=now)
    elif state == LeaseState.ACTIVE:
        set_aside(lease, needed(lease, charged, now=now), charged, now=now, force=True)
    elif used == charged.unit_seconds:
        set_aside(lease, charged.by_month, charged, now=now, force=True)
        if state in OVER:
            Hold.objects.filter(lease=lease).update(settled_at=now)
    else:
        Hold.objects.filter(lease=lease).update(looked_at=now)  # its last seconds are yet to be charged
