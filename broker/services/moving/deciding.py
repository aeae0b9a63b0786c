"""What operators decide about a plan of moves: carry it out, decline it, call it off."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from broker.domain.moves import CANCELLABLE, PlanState
from broker.models import MovePlan
from broker.services.moving import beginning
from broker.services.moving.records import moves_of, turn_plan
from broker.services.moving.rooms import is_wanted
from ports import doorbell
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Refused, Stale


class NotNow(Refused):
    code, status, title = "plan-not-now", 409, "The plan cannot be changed like this now"


@transaction.atomic
def accept(plan: MovePlan, *, why: str, actor: Actor, now: datetime) -> None:
    """Tell the tenants concerned, and begin once their notice is over; raises NotNow or Stale."""
    _must_be(plan, PlanState.PROPOSED)
    if not is_wanted(plan):
        raise NotNow(
            "Nobody waits for the room that it makes any longer.", fix="Decline it, or propose anew."
        )
    begins = now + timedelta(seconds=settings.MOVE_NOTICE_S)
    _turn(plan, PlanState.ACCEPTED, why=why, actor=actor, now=now, not_before=begins, due_at=begins)
    told: set[str] = set()
    for move in moves_of(plan):
        if move.lease_id not in told:  # a lease that moves by way of another card is told once
            beginning.notice(move, at=begins, now=now)
            told.add(move.lease_id)
    doorbell.ring("broker.move", plan.pk, now=now, after_s=settings.MOVE_NOTICE_S)


@transaction.atomic
def decline(plan: MovePlan, *, why: str, actor: Actor, now: datetime) -> None:
    """Put a proposed plan away; nothing was changed by it."""
    _must_be(plan, PlanState.PROPOSED)
    _turn(plan, PlanState.DECLINED, why=why, actor=actor, now=now, due_at=None)


@transaction.atomic
def cancel(plan: MovePlan, *, why: str, actor: Actor, now: datetime) -> None:
    """Call a plan off: a lease that is under way goes back, the others stay; what is done stays done."""
    if PlanState(plan.state) not in CANCELLABLE:
        raise NotNow(f"The plan is {plan.state}.", fix="Look at where it stands.")
    _turn(plan, PlanState.CANCELLING, why=why, actor=actor, now=now, due_at=now)
    doorbell.ring("broker.move", plan.pk, now=now)


def _must_be(plan: MovePlan, state: PlanState) -> None:
    if plan.state != state:
        raise NotNow(f"The plan is {plan.state}, not {state}.", fix="Look at where it stands.")


def _turn(
    plan: MovePlan, state: PlanState, *, why: str, actor: Actor, now: datetime, **changes: object
) -> None:
    if not turn_plan(plan, state, why=why, now=now, actor_label=actor.label, **changes):
        raise Stale("The plan has moved on meanwhile.", fix="Look at where it stands.")
    audit.record(
        f"plan.{state}",
        actor=actor,
        now=now,
        subject_id=plan.pk,
        subject_label=str(plan),
        reason=why,
    )
