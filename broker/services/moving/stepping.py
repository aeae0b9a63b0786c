"""Level-triggered, as leases are: look at one plan, do the next thing it needs. Hints may be lost or doubled.

One lease is moved after the other, for the place of one may be the room of the next. What happens to the lease in
between is the work of whoever looks at leases (`crossing`); here it is begun, and what did not come to be is closed.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Q

from broker.domain.moves import BEGUN, MoveState, PlanState, end_of
from broker.domain.states import LeaseState
from broker.models import Lease, Move, MovePlan, StaleLease
from broker.services.moving import beginning, crossing
from broker.services.moving.records import moves_of, turn_move, turn_plan
from broker.services.moving.rooms import is_wanted
from ports import doorbell
from tenants.services.walls import as_tenant

CLAIM, LOOK_AGAIN = timedelta(seconds=30), timedelta(seconds=10)
SOON_S = 2.0
BATCH = 100
M, P, S = MoveState, PlanState, LeaseState
Hint = tuple[str, str, str]


def step(plan_id: str, *, now: datetime) -> None:
    """Do the next thing a plan needs. Safe to call at any time, any number of times, from anywhere."""
    plan = _claim(plan_id, now)
    if plan is None:
        return
    moves = moves_of(plan)
    if at_work := next((each for each in moves if each.state in BEGUN), None):
        _look(plan, at_work, now)
        _again(plan, now, after=LOOK_AGAIN)
    elif plan.state != P.CANCELLING and plan.not_before and now < plan.not_before:
        MovePlan.objects.filter(pk=plan.pk).update(due_at=plan.not_before, claimed_until=None)
    elif left := [each for each in moves if not each.over]:
        if plan.state == P.CANCELLING or is_wanted(plan):
            _next(plan, left, now)
        else:
            turn_plan(plan, P.CANCELLING, why="nobody waits for the room that it makes any longer", now=now)
        _again(plan, now, after=LOOK_AGAIN)
    else:
        ended = end_of([M(each.state) for each in moves], cancelled=plan.state == P.CANCELLING)
        turn_plan(plan, ended, why=_summary(moves), now=now, due_at=None)


def _claim(plan_id: str, now: datetime) -> MovePlan | None:
    free = Q(claimed_until=None) | Q(claimed_until__lt=now)
    if not MovePlan.objects.at_work().filter(free, pk=plan_id).update(claimed_until=now + CLAIM):
        return None
    return MovePlan.objects.at_work().filter(pk=plan_id).first()


def _again(plan: MovePlan, now: datetime, *, after: timedelta) -> None:
    MovePlan.objects.at_work().filter(pk=plan.pk).update(due_at=now + after, claimed_until=None)
    doorbell.ring("broker.move", plan.pk, now=now, after_s=SOON_S)


def _next(plan: MovePlan, left: Sequence[Move], now: datetime) -> None:
    """Take up the next move; all that are left are called off with a plan that is."""
    if plan.state == P.CANCELLING:
        for each in left:
            with as_tenant(each.tenant_id):
                turn_move(each, M.UNDONE, why="called off before it began", now=now)
        return
    move = left[0]
    if move.state == M.PLANNED:  # the lease had another move before this one, and its tenant was told of that
        beginning.notice(move, at=now, now=now)
    else:
        beginning.begin(move, now=now)


def _look(plan: MovePlan, move: Move, now: datetime) -> None:
    """See how far a lease is; close the move of one that is no longer on its way."""
    with as_tenant(move.tenant_id):
        rows = Lease.objects.select_for_update(of=("self",), no_key=True).select_related("offering")
        lease = rows.get(pk=move.lease_id)
        match S(lease.state):
            case S.PROVISIONING if plan.state == P.CANCELLING and move.state == M.MOVING:
                try:
                    crossing.go_back(lease, why=crossing.CALLED_OFF, now=now)
                except StaleLease:
                    return  # somebody saw it start, or end: the next look says which
            case S.STOPPING | S.PROVISIONING:
                return
            case S.ACTIVE:
                crossing.land(lease, now=now)
            case _:
                _close(lease, move, now)


def _close(lease: Lease, move: Move, now: datetime) -> None:
    """Close the move of a lease that ended, was stopped, or has to wait for a place."""
    crossing.free_beside(lease, now=now)
    if lease.state == S.QUEUED:
        why = f"it could not go back and waits for another place: {move.why}"
        turn_move(move, M.FAILED, why=why, now=now)
    elif lease.state == S.STOPPED:
        turn_move(move, M.UNDONE, why="stopped by its tenant while it was moved", now=now)
    else:
        turn_move(move, M.UNDONE, why=f"it ended meanwhile: {lease.end_reason.replace('_', ' ')}", now=now)


def _summary(moves: Sequence[Move]) -> str:
    done = sum(each.state == M.DONE for each in moves)
    return f"{done} of {len(moves)} leases moved"


def due(*, now: datetime) -> list[Hint]:
    """Return the plans that somebody should look at now."""
    idle = Q(claimed_until=None) | Q(claimed_until__lt=now)
    rows = MovePlan.objects.at_work().filter(idle, due_at__lte=now).order_by("due_at", "id")
    return [("broker.move", pk, "") for pk in rows.values_list("id", flat=True)[:BATCH]]
