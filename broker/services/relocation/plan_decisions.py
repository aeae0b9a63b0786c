"""Operators' decisions on a relocation plan: accept, decline, cancel."""

from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from broker.domain.lifecycle.relocation_states import CANCELLABLE_PLAN_STATES, RelocationPlanState
from broker.models import RelocationPlan
from broker.services.leases.relocation_records import relocations_of, set_plan_state
from broker.services.relocation import relocation_start
from broker.services.relocation.freed_slots import is_still_needed
from ports import outbox
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError, StaleVersion


class PlanNotChangeable(ProblemError):
    code, status, title = "plan-change-not-allowed", 409, "The plan cannot be changed now"


@transaction.atomic
def accept_plan(plan: RelocationPlan, *, why: str, actor: Actor, now: datetime) -> None:
    """Announce the plan's relocations; they begin when the notice period is over.

    Raises PlanNotChangeable or StaleVersion.
    """
    _check_state(plan, RelocationPlanState.PROPOSED)
    if not is_still_needed(plan):
        raise PlanNotChangeable("No queued lease needs this plan any more.", fix="Decline it, or find moves again.")
    begins = now + timedelta(seconds=settings.RELOCATION_NOTICE_S)
    _set_state(plan, RelocationPlanState.ACCEPTED, why=why, actor=actor, now=now, not_before=begins, due_at=begins)
    notified: set[str] = set()
    for move in relocations_of(plan):
        if move.lease_id not in notified:  # a lease with two relocations by way of another GPU is told once
            relocation_start.announce_relocation(move, at=begins, now=now)
            notified.add(move.lease_id)
    outbox.enqueue("broker.reconcile_relocation_plan", plan.pk, now=now, after_s=settings.RELOCATION_NOTICE_S)


@transaction.atomic
def decline_plan(plan: RelocationPlan, *, why: str, actor: Actor, now: datetime) -> None:
    """Reject a proposed plan; nothing was changed by it."""
    _check_state(plan, RelocationPlanState.PROPOSED)
    _set_state(plan, RelocationPlanState.DECLINED, why=why, actor=actor, now=now, due_at=None)


@transaction.atomic
def cancel_plan(plan: RelocationPlan, *, why: str, actor: Actor, now: datetime) -> None:
    """Cancel a plan: a lease under way goes back, finished relocations stay."""
    if RelocationPlanState(plan.state) not in CANCELLABLE_PLAN_STATES:
        raise PlanNotChangeable(f"The plan is {plan.state}.", fix="Check its current state.")
    _set_state(plan, RelocationPlanState.CANCELLING, why=why, actor=actor, now=now, due_at=now)
    outbox.enqueue("broker.reconcile_relocation_plan", plan.pk, now=now)


def _check_state(plan: RelocationPlan, state: RelocationPlanState) -> None:
    if plan.state != state:
        raise PlanNotChangeable(f"The plan is {plan.state}, not {state}.", fix="Check its current state.")


def _set_state(
    plan: RelocationPlan, state: RelocationPlanState, *, why: str, actor: Actor, now: datetime, **changes: object
) -> None:
    if not set_plan_state(plan, state, why=why, now=now, actor_label=actor.label, **changes):
        raise StaleVersion("The plan has changed in the meantime.", fix="Check its current state.")
    audit.record(f"relocation_plan.{state}", plan, actor=actor, now=now, reason=why)
