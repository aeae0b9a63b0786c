"""What operators decide: carry a plan out, call it off, try again what failed."""

from datetime import datetime

from django.db import transaction

from broker.domain.repartition import CANCELLABLE, Step
from broker.models import Gpu, LayoutChange, NodeState
from broker.models.layouts import Layout, cuts_from
from broker.services.layouts import cards, moving
from ports import doorbell
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Refused, Stale


class NotNow(Refused):
    code, status, title = "layout-not-now", 409, "The layout cannot be changed like this now"


@transaction.atomic
def approve(change: LayoutChange, *, actor: Actor, now: datetime, why: str = "approved") -> None:
    """Close the node and begin; raises NotNow, or Stale when it is no longer cut as the plan found it."""
    _must_be(change, Step.PLANNED)
    if change.node.state != NodeState.READY:
        raise NotNow(
            f"{change.node} is {change.node.state}: what is not in service is not cut.",
            fix="Bring the node back first, or call the plan off.",
        )
    before = cuts_from(change.before)
    if {card.index: cards.cut_now(card) for card in Gpu.objects.filter(node_id=change.node_id)} != before:
        raise Stale(f"{change.node} is no longer cut as the plan found it.", fix="Plan anew.")
    _take(change, Step.CLOSING, why=why, actor=actor, now=now)


@transaction.atomic
def cancel(change: LayoutChange, *, why: str, actor: Actor, now: datetime) -> None:
    """Call a change off; raises NotNow once the node was told, for then only its own end helps."""
    if Step(change.step) not in CANCELLABLE:
        raise NotNow(
            f"{change.node} was told to change already and stands at {change.step}.",
            fix="Wait for its end; if it fails the node stays closed until you decide.",
        )
    step = Step.CANCELLED if change.step == Step.PLANNED else Step.CANCELLING
    _take(change, step, why=why, actor=actor, now=now)


def again(change: LayoutChange, *, why: str, actor: Actor, now: datetime) -> LayoutChange:
    """Try anew what ended in quarantine."""
    return _follow(change, change.wanted, why=why, actor=actor, now=now)


def take_back(change: LayoutChange, *, why: str, actor: Actor, now: datetime) -> LayoutChange:
    """Return a node that ended in quarantine to how it was cut before."""
    return _follow(change, change.before, why=why, actor=actor, now=now)


@transaction.atomic
def _follow(change: LayoutChange, wanted: Layout, *, why: str, actor: Actor, now: datetime) -> LayoutChange:
    _must_be(change, Step.QUARANTINED)
    if LayoutChange.objects.filter(node_id=change.node_id, planned_at__gt=change.planned_at).exists():
        raise NotNow(f"{change.node} has had another change since.", fix="Look at that one.")
    following = LayoutChange.objects.create(
        node=change.node, wanted=wanted, before=change.before, planned_at=now, step_at=now
    )
    _take(following, Step.CLOSING, why=why, actor=actor, now=now)
    return following


def _must_be(change: LayoutChange, step: Step) -> None:
    if change.step != step:
        raise NotNow(
            f"The change of {change.node} is {change.step}, not {step}.", fix="Look at where it stands."
        )


def _take(change: LayoutChange, step: Step, *, why: str, actor: Actor, now: datetime) -> None:
    if not moving.move(change, step, why=why, now=now, actor_label=actor.label):
        raise Stale(f"The change of {change.node} has moved on meanwhile.", fix="Look at where it stands.")
    audit.record(
        f"layout.{step}",
        actor=actor,
        now=now,
        subject_id=change.pk,
        subject_label=f"{change.node.cluster} / {change.node}",
        reason=why,
        wanted=change.wanted,
    )
    if not change.over:
        doorbell.ring("broker.recut", change.pk, now=now)
