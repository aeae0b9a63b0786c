"""Operators' decisions on a repartition: approve, cancel, retry, roll back."""

from datetime import datetime

from django.db import transaction

from broker.domain.repartition.repartition_steps import CANCELLABLE_STEPS, RepartitionStep
from broker.models import Gpu, NodeState, Repartition
from broker.models.repartitions import StoredLayout, layouts_from_stored
from broker.services.repartition import layout_rows, repartition_records
from ports import outbox
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError, StaleVersion


class RepartitionNotPossible(ProblemError):
    code, status, title = "layout-change-not-allowed", 409, "The layout cannot be changed now"


@transaction.atomic
def approve_repartition(change: Repartition, *, actor: Actor, now: datetime, why: str = "approved") -> None:
    """Close the node to new leases and begin the repartition.

    Raises RepartitionNotPossible, or StaleVersion when the node is no longer partitioned as the plan found it.
    """
    _check_step(change, RepartitionStep.PLANNED)
    if change.node.state != NodeState.READY:
        raise RepartitionNotPossible(
            f"{change.node} is {change.node.state}. Only nodes in service are repartitioned.",
            fix="Return the node to service first, or cancel the change.",
        )
    before = layouts_from_stored(change.before)
    if {gpu.index: layout_rows.current_layout(gpu) for gpu in Gpu.objects.filter(node_id=change.node_id)} != before:
        raise StaleVersion(f"{change.node} has another layout than in the plan.", fix="Plan the layouts again.")
    _set_step(change, RepartitionStep.CLOSING, why=why, actor=actor, now=now)


@transaction.atomic
def cancel_repartition(change: Repartition, *, why: str, actor: Actor, now: datetime) -> None:
    """Cancel a repartition; raise RepartitionNotPossible once the node was instructed.

    From then on it has to run to its end.
    """
    if RepartitionStep(change.step) not in CANCELLABLE_STEPS:
        raise RepartitionNotPossible(
            f"{change.node} is already being changed (state: {change.step}).",
            fix="Wait until it ends. If it fails, the node stays closed until you decide.",
        )
    step = RepartitionStep.CANCELLED if change.step == RepartitionStep.PLANNED else RepartitionStep.CANCELLING
    _set_step(change, step, why=why, actor=actor, now=now)


def retry_repartition(change: Repartition, *, why: str, actor: Actor, now: datetime) -> Repartition:
    """Retry a repartition that ended in quarantine."""
    return _create_follow_up(change, change.wanted, why=why, actor=actor, now=now)


def roll_back_repartition(change: Repartition, *, why: str, actor: Actor, now: datetime) -> Repartition:
    """Return a quarantined node to its earlier partitioning."""
    return _create_follow_up(change, change.before, why=why, actor=actor, now=now)


@transaction.atomic
def _create_follow_up(
    change: Repartition, wanted: StoredLayout, *, why: str, actor: Actor, now: datetime
) -> Repartition:
    _check_step(change, RepartitionStep.QUARANTINED)
    if Repartition.objects.filter(node_id=change.node_id, planned_at__gt=change.planned_at).exists():
        raise RepartitionNotPossible(f"{change.node} has a newer change.", fix="Open the newer change.")
    following = Repartition.objects.create(
        node=change.node, wanted=wanted, before=change.before, planned_at=now, step_at=now
    )
    _set_step(following, RepartitionStep.CLOSING, why=why, actor=actor, now=now)
    return following


def _check_step(change: Repartition, step: RepartitionStep) -> None:
    if change.step != step:
        raise RepartitionNotPossible(
            f"The change of {change.node} is {change.step}, not {step}.", fix="Check its current state."
        )


def _set_step(change: Repartition, step: RepartitionStep, *, why: str, actor: Actor, now: datetime) -> None:
    if not repartition_records.set_repartition_step(change, step, why=why, now=now, actor_label=actor.label):
        raise StaleVersion(
            f"The change of {change.node} has progressed in the meantime.", fix="Check its current state."
        )
    audit.record(
        f"layout_change.{step}",
        change,
        f"{change.node.cluster} / {change.node}",
        actor=actor,
        now=now,
        reason=why,
        wanted=change.wanted,
    )
    if not change.is_over:
        outbox.enqueue("broker.reconcile_repartition", change.pk, now=now)
