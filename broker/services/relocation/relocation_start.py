"""Announcement and start of a lease's relocation."""

from datetime import datetime

from django.db import IntegrityError, transaction

from broker.domain.lifecycle.relocation_states import RelocationPlanState, RelocationState
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Lease, Relocation, RelocationPlan, StaleLease
from broker.services.leases.lifecycle import stop_and_start
from broker.services.leases.relocation_records import set_plan_state, set_relocation_state
from broker.services.queue.batch_placement import is_lost_race
from broker.services.relocation import relocation_emails
from broker.services.relocation.target_slots import relocation_obstacle, reserve_target
from tenants.services.actors import SYSTEM
from tenants.services.rls import tenant_scope

M = RelocationState


def announce_relocation(move: Relocation, *, at: datetime, now: datetime) -> None:
    """Announce a relocation to the tenant, with its earliest start, or cancel it."""
    with tenant_scope(move.tenant_id):
        lease = _lock_lease(move)
        if why := _other_relocation_reason(move) or relocation_obstacle(lease, move, now=now):
            set_relocation_state(move, M.UNDONE, why=why, now=now)
            return
        day = "" if at.date() == now.date() else f" on {at.day} {at:%B}"
        message = f"will be moved to another GPU, not before {at:%H:%M} UTC{day}"
        # In the ledger, which every event comes from. Not later than its last observation: what comes after that
        # is not certain to be charged.
        lease.transition(LeaseState.ACTIVE, now=lease.seen_at or lease.state_since, cause=message)
        set_relocation_state(move, M.NOTICED, why=message, now=now, not_before=at)
        if at > now:
            relocation_emails.send_relocation_email(lease, message=message, cost_s=move.cost_s)


def _other_relocation_reason(move: Relocation) -> str:
    """Return a reason if another relocation of the lease is open.

    PostgreSQL allows a lease only one.
    """
    states = [M.NOTICED.value, M.MOVING.value, M.RETURNING.value]
    others = Relocation.objects.filter(lease_id=move.lease_id, state__in=states)
    return "it is already being moved" if others.exists() else ""


def begin_relocation(move: Relocation, *, now: datetime) -> bool:
    """Reserve the target slot and stop the lease; return False if it stays.

    It also returns False when another worker was faster.
    """
    with tenant_scope(move.tenant_id):
        # Locked before the lease: cancelling a plan locks in this order.
        plan = RelocationPlan.objects.select_for_update(of=("self",)).at_work().filter(pk=move.plan_id).first()
        if plan is None or plan.state == RelocationPlanState.CANCELLING:
            return False
        lease = _lock_lease(move)
        if why := relocation_obstacle(lease, move, now=now):
            set_relocation_state(move, M.UNDONE, why=why, now=now)
            return False
        try:
            with transaction.atomic():
                if not reserve_target(lease, move, now=now):
                    raise StaleLease(lease.pk)
                cause = "moved to another GPU, as its tenant allows"
                stop_and_start.pause_lease(lease, reason=EndReason.BY_OPERATOR, cause=cause, actor=SYSTEM, now=now)
        except StaleLease:
            return False  # its present state decides, at the next check
        except IntegrityError as error:
            if not is_lost_race(error):
                raise
            set_relocation_state(move, M.UNDONE, why="the target slice was taken in the meantime", now=now)
            return False
        if plan.state == RelocationPlanState.ACCEPTED:
            set_plan_state(plan, RelocationPlanState.RUNNING, why="the first move has started", now=now)
        return set_relocation_state(move, M.MOVING, why="leaves its slice", now=now)


def _lock_lease(move: Relocation) -> Lease:
    rows = Lease.objects.select_for_update(of=("self",), no_key=True)
    return rows.select_related("offering", "project", "volume").get(pk=move.lease_id)
