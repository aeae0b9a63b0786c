"""Holds follow their leases: they shrink to what is charged, and what a lease did not use is free again."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import structlog
from django.db import DatabaseError, connection, transaction
from django.db.models import F, OuterRef, Subquery

from billing.models import Hold
from billing.services.funds import capping
from billing.services.funds.capping import CapReached
from billing.services.funds.holds import BudgetExceeded, set_aside
from billing.services.funds.looking import Look, look_at, use_of
from billing.services.wallets import covering, money
from billing.services.wallets.covering import PaymentRequired
from broker.domain.states import EndReason, LeaseState
from broker.models import Lease, StaleLease
from broker.services.leases import ending
from broker.services.moving import crossing
from tenants.services.quotas import hold_off_new
from tenants.services.walls import as_sweep, as_tenant

log = structlog.get_logger(__name__)
SEEN = Subquery(Lease.objects.filter(pk=OuterRef("lease_id")).values("seq"))
LOOK_EVERY = timedelta(minutes=5)
MOST = 500  # leases that are looked at in one go
OVER = (LeaseState.RELEASING, LeaseState.RELEASED, LeaseState.FAILED)
WAITS = (LeaseState.REQUESTED, LeaseState.QUEUED, LeaseState.PROVISIONING)
# Let in by a release, or by settings, without the gate: what they cost counts all the same.
UNHELD = """
SELECT DISTINCT l.id, l.tenant_id
  FROM billing_budget b
  JOIN tenants_project p ON p.path @> ARRAY[b.project_id]::varchar[]
  JOIN broker_lease l ON l.project_id = p.id AND l.state IN ('queued', 'provisioning', 'active')
 WHERE NOT EXISTS (SELECT FROM billing_hold h WHERE h.lease_id = l.id)
 UNION
SELECT l.id, l.tenant_id
  FROM billing_tenantterms t JOIN broker_lease l ON l.tenant_id = t.tenant_id
 WHERE t.payment = 'prepaid' AND l.state IN ('queued', 'provisioning', 'active')
   AND NOT EXISTS (SELECT FROM billing_hold h WHERE h.lease_id = l.id AND h.covers_until IS NOT NULL)
 LIMIT %s
"""


def look_again(*, now: datetime) -> int:
    """Bring holds up to what became of their leases; return how many were looked at.

    What waits and has no room any longer, since a price rose or its month began, is ended. What runs is not: what it
    costs more is taken all the same, and said aloud. One that cannot be looked at keeps nobody else's waiting.
    """
    with as_sweep():
        due = list(_due(now))
    for lease_id, tenant_id in due:
        with as_tenant(tenant_id):
            try:
                _look(lease_id, tenant_id, now)
            except (DatabaseError, StaleLease, ValueError) as error:
                log.error("a hold could not be brought up", lease_id=lease_id, why=str(error).strip())
                Hold.objects.filter(lease_id=lease_id).update(looked_at=now, seq=SEEN)
    return len(due)


def _due(now: datetime) -> Iterator[tuple[str, str]]:
    """Name leases: without a hold, moved since the last look, and after a while all others; those that move first."""
    open_ = Hold.objects.filter(settled_at=None).order_by("looked_at").values_list("lease_id", "tenant_id")
    yield from open_.exclude(lease__seq=F("seq"))[:MOST]
    with connection.cursor() as cursor:
        cursor.execute(UNHELD, [MOST])
        yield from cursor.fetchall()
    yield from open_.filter(looked_at__lte=now - LOOK_EVERY, lease__seq=F("seq"))[:MOST]


def _look(lease_id: str, tenant_id: str, now: datetime) -> None:
    with transaction.atomic():
        hold_off_new(tenant_id)
        rows = Lease.objects.select_for_update(of=("self",)).select_related("project__tenant", "offering")
        lease = rows.get(pk=lease_id)
        try:
            with transaction.atomic():
                _bring_up(lease, now)
        except PaymentRequired as refusal:
            log.warning("a lease has no money any longer", lease_id=lease.pk, why=refusal.detail)
            ending.release(lease, reason=EndReason.UNPAID, now=now)
        except (
            BudgetExceeded,
            CapReached,
        ) as refusal:  # it waits, and nobody starts it while its row is kept
            log.warning("a lease that waits has no budget any longer", lease_id=lease_id, why=refusal.detail)
            ending.release(lease, reason=EndReason.BUDGET, now=now)


def _bring_up(lease: Lease, now: datetime) -> None:
    use, state = use_of(lease), LeaseState(lease.state)
    moves = crossing.begun(lease) is not None  # to another card: it was let in for all of its time
    if state in WAITS or state == LeaseState.ACTIVE:
        force = state == LeaseState.ACTIVE or moves
        look = look_at(lease, use, now=now)
        set_aside(look, look.outlook.needed(lease, use, now=now), force=force or look.hold.new)
        capping.follow(lease, use, now=now, force=force)
        _cover(look, state, now)
    elif state == LeaseState.STOPPING or use.uncharged or (moves and state not in OVER):
        # It may go on, or is yet to be charged.
        Hold.objects.filter(lease=lease).update(looked_at=now, seq=lease.seq)
    else:
        look = look_at(lease, use, now=now)
        set_aside(look, use.by_month, force=True)
        capping.settle(lease, use)
        _cover(look, state, now)
        if state in OVER:
            Hold.objects.filter(lease=lease).update(settled_at=now)


def _cover(look: Look, state: LeaseState, now: datetime) -> None:
    """Keep a lease covered by its tenant's wallet while it may run, and leave taken what it was charged after that."""
    if not money.is_prepaid(look.hold.tenant_id):
        covering.drop(look.lease)
    elif state == LeaseState.ACTIVE:
        covering.extend(look, now=now)
    elif state in WAITS:
        covering.take(look, now=now)
    else:
        covering.close(look, now=now)
