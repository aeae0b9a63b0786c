"""The one way of a plan and of its moves from state to state: the row and its entry in the ledger, together."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import F

from broker.domain.moves import NEXT_OF_MOVE, NEXT_OF_PLAN, MoveState, PlanState
from broker.models import Move, MoveEntry, MovePlan
from tenants.services.walls import as_staff

LONGEST = 200


@transaction.atomic
def turn_plan(
    plan: MovePlan, state: PlanState, *, why: str, now: datetime, actor_label: str = "", **changes: object
) -> bool:
    """Take a plan one step on, if it still stands where it was read; False when somebody was faster."""
    if state not in NEXT_OF_PLAN[PlanState(plan.state)]:
        raise ValueError(f"a plan that is {plan.state} cannot become {state}")
    standing = MovePlan.objects.filter(pk=plan.pk, state=plan.state)
    told = {"state": state.value, "state_at": now, "why": why[:LONGEST], "claimed_until": None, **changes}
    if not standing.update(**told):
        return False
    enter(plan.pk, state.value, why=why, now=now, actor_label=actor_label)
    plan.refresh_from_db()
    return True


def turn_move(move: Move, state: MoveState, *, why: str, now: datetime, **changes: object) -> bool:
    """Do the same with a move, inside its tenant's transaction."""
    if state not in NEXT_OF_MOVE[MoveState(move.state)]:
        raise ValueError(f"a move that is {move.state} cannot become {state}")
    standing = Move.objects.filter(pk=move.pk, state=move.state)
    if not standing.update(state=state.value, state_at=now, why=why[:LONGEST], **changes):
        return False
    enter(move.plan_id, state.value, n=move.n, why=why, now=now)
    move.refresh_from_db()
    return True


def enter(
    plan_id: str, state: str, *, why: str, now: datetime, n: int | None = None, actor_label: str = ""
) -> None:
    """Add a line to a plan's ledger; its row is locked for that, so that lines are counted without a gap."""
    MovePlan.objects.filter(pk=plan_id).update(seq=F("seq") + 1)
    seq = MovePlan.objects.values_list("seq", flat=True).get(pk=plan_id)
    MoveEntry.objects.create(
        plan_id=plan_id, seq=seq, n=n, state=state, at=now, why=why[:LONGEST], actor_label=actor_label
    )


def moves_of(plan: MovePlan) -> Sequence[Move]:
    """Return a plan's moves in their order, whosever they are."""
    with as_staff():
        return list(Move.objects.filter(plan=plan).order_by("n"))
