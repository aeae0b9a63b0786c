"""Reconciler of relocation plans: checks one plan and performs the next step it needs.

Level-triggered, like the reconciler of leases: messages may be lost or doubled. Leases are relocated one
after the other, because the source of one may be the target of the next. What happens to the lease in
between is done by the reconciler of leases (`relocation_steps`); here a relocation is begun, and one that did
not succeed is closed.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Q

from broker.domain.lifecycle.relocation_states import (
    STARTED_RELOCATION_STATES,
    RelocationPlanState,
    RelocationState,
    final_plan_state,
)
from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease, Relocation, RelocationPlan, StaleLease
from broker.services.leases import relocation_steps
from broker.services.leases.relocation_records import relocations_of, set_plan_state, set_relocation_state
from broker.services.relocation import relocation_start
from broker.services.relocation.freed_slots import is_still_needed
from ports import outbox
from tenants.services.rls import tenant_scope

CLAIM, RECHECK_AFTER = timedelta(seconds=30), timedelta(seconds=10)
SOON_S = 2.0
BATCH = 100
M, P, S = RelocationState, RelocationPlanState, LeaseState


def reconcile_plan(plan_id: str, *, now: datetime) -> None:
    """Perform the next step of a plan. Idempotent; may be called at any time."""
    plan = _claim(plan_id, now)
    if plan is None:
        return
    moves = relocations_of(plan)
    if at_work := next((each for each in moves if each.state in STARTED_RELOCATION_STATES), None):
        _check_progress(plan, at_work, now)
        _schedule_check(plan, now, after=RECHECK_AFTER)
    elif plan.state != P.CANCELLING and plan.not_before and now < plan.not_before:
        RelocationPlan.objects.filter(pk=plan.pk).update(due_at=plan.not_before, claimed_until=None)
    elif left := [each for each in moves if not each.is_over]:
        if plan.state == P.CANCELLING or is_still_needed(plan):
            _begin_next(plan, left, now)
        else:
            set_plan_state(plan, P.CANCELLING, why="no queued lease needs it any more", now=now)
        _schedule_check(plan, now, after=RECHECK_AFTER)
    else:
        ended = final_plan_state([M(each.state) for each in moves], cancelled=plan.state == P.CANCELLING)
        set_plan_state(plan, ended, why=_summary(moves), now=now, due_at=None)


def _claim(plan_id: str, now: datetime) -> RelocationPlan | None:
    free = Q(claimed_until=None) | Q(claimed_until__lt=now)
    if not RelocationPlan.objects.at_work().filter(free, pk=plan_id).update(claimed_until=now + CLAIM):
        return None
    return RelocationPlan.objects.at_work().filter(pk=plan_id).first()


def _schedule_check(plan: RelocationPlan, now: datetime, *, after: timedelta) -> None:
    RelocationPlan.objects.at_work().filter(pk=plan.pk).update(due_at=now + after, claimed_until=None)
    outbox.enqueue("broker.reconcile_relocation_plan", plan.pk, now=now, after_s=SOON_S)


def _begin_next(plan: RelocationPlan, left: Sequence[Relocation], now: datetime) -> None:
    """Begin the next relocation, or cancel all remaining ones with their plan."""
    if plan.state == P.CANCELLING:
        for each in left:
            with tenant_scope(each.tenant_id):
                set_relocation_state(each, M.UNDONE, why="cancelled before it started", now=now)
        return
    move = left[0]
    if move.state == M.PLANNED:  # a second relocation of the same lease, whose tenant was told of the first
        relocation_start.announce_relocation(move, at=now, now=now)
    else:
        relocation_start.begin_relocation(move, now=now)


def _check_progress(plan: RelocationPlan, move: Relocation, now: datetime) -> None:
    """Check the lease's progress; close its relocation if it is no longer under way."""
    with tenant_scope(move.tenant_id):
        rows = Lease.objects.select_for_update(of=("self",), no_key=True).select_related("offering")
        lease = rows.get(pk=move.lease_id)
        match S(lease.state):
            case S.PROVISIONING if plan.state == P.CANCELLING and move.state == M.MOVING:
                try:
                    relocation_steps.return_to_source(lease, why=relocation_steps.CANCELLED_BY_OPERATOR, now=now)
                except StaleLease:
                    return  # it started or ended meanwhile: the next check decides
            case S.STOPPING | S.PROVISIONING:
                return
            case S.ACTIVE:
                relocation_steps.finish_relocation(lease, now=now)
            case _:
                _close_relocation(lease, move, now)


def _close_relocation(lease: Lease, move: Relocation, now: datetime) -> None:
    """Close the relocation of a lease that ended, was stopped, or is queued."""
    relocation_steps.free_other_placement(lease, now=now)
    if lease.state == S.QUEUED:
        why = f"it could not return to its old slice and is queued: {move.why}"
        set_relocation_state(move, M.FAILED, why=why, now=now)
    elif lease.state == S.STOPPED:
        set_relocation_state(move, M.UNDONE, why="stopped by the tenant during a relocation", now=now)
    else:
        set_relocation_state(
            move, M.UNDONE, why=f"it ended in the meantime: {lease.end_reason.replace('_', ' ')}", now=now
        )


def _summary(moves: Sequence[Relocation]) -> str:
    done = sum(each.state == M.DONE for each in moves)
    return f"{done} of {len(moves)} leases moved"


def due_plans(*, now: datetime) -> list[outbox.TaskMessage]:
    """Return a message for every plan that is due."""
    idle = Q(claimed_until=None) | Q(claimed_until__lt=now)
    rows = RelocationPlan.objects.at_work().filter(idle, due_at__lte=now).order_by("due_at", "id")
    return [("broker.reconcile_relocation_plan", pk, "") for pk in rows.values_list("id", flat=True)[:BATCH]]
