"""Level-triggered, as leases are: look at one change, do the next thing it needs. Hints may be lost or doubled.

Load and claim; act with no transaction open; apply if the row is still as it was loaded. Nobody is ever thrown out:
a change waits until the last lease has left by itself.
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q

from broker.domain.mig_configs import alias_of, name_of, slots_of
from broker.domain.repartition import BETWEEN_NAMES, BLIND, Standing, Step, Verdict, Wanted, judge
from broker.models import Allocation, Gpu, LayoutChange, Lease
from broker.provisioners.base import Unanswered
from broker.provisioners.hands import LayoutHands
from broker.services.layouts import cards
from broker.services.layouts.machines import hands_of, machine_of
from broker.services.layouts.moving import LONGEST, move
from ports import doorbell
from tenants.services.walls import as_staff

CLAIM = timedelta(seconds=30)
LOOK_AGAIN, WAIT_FOR_LEASES, CONFLICT_S = timedelta(seconds=5), timedelta(seconds=15), 1.0
BATCH = 100
S = Step
Hint = tuple[str, str, str]


def step(change_id: str, *, now: datetime) -> None:
    """Do the next thing a change needs. Safe to call at any time, any number of times, from anywhere."""
    change = _claim(change_id, now)
    hands = hands_of(change.node) if change else None
    if change is None or hands is None:
        return
    try:
        verdict = _act(change, hands, now)
    except Unanswered as silence:
        verdict = Verdict(S(change.step), f"the cluster does not answer: {silence}")
    _apply(change, verdict, now)


def _claim(change_id: str, now: datetime) -> LayoutChange | None:
    """Take the change for ourselves for a while; None when another worker has it or there is nothing to do."""
    change = LayoutChange.objects.under_way().select_related("node__cluster").filter(pk=change_id).first()
    if change is None:
        return None
    free = LayoutChange.objects.filter(
        Q(claimed_until=None) | Q(claimed_until__lt=now), pk=change.pk, seq=change.seq
    )
    return change if free.update(claimed_until=now + CLAIM, tries=F("tries") + 1) else None


def _act(change: LayoutChange, hands: LayoutHands, now: datetime) -> Verdict:
    """Look at the node, and tell it what is next; no transaction is open."""
    machine = machine_of(change.node)
    if change.step == S.CLOSING:
        hands.taint(machine, on=True)
        hands.prepare(machine, change.cuts, now=now)  # it learns while the last lease is waited for
        return Verdict(S.DRAINING, "nothing new is placed on it")
    if change.step in (S.OPENING, S.CANCELLING):
        hands.taint(machine, on=False)
        return Verdict(*(S.DONE, "sold again") if change.step == S.OPENING else (S.CANCELLED, "called off"))
    held = _held(change)  # before the node is looked at: nothing can come while its cards are closed
    seen = hands.look(machine, now=now)
    verdict = judge(_standing(change, held, now), seen, wanted_by(change))
    if verdict.taint:
        hands.taint(machine, on=True)
    return _tell(change, hands, verdict, seen.version, now) if verdict.tell else verdict


def _tell(change: LayoutChange, hands: LayoutHands, verdict: Verdict, version: str, now: datetime) -> Verdict:
    machine = machine_of(change.node)
    if wait := hands.prepare(machine, change.cuts, now=now):
        return Verdict(S(change.step), f"the node learns the layout for another {wait.total_seconds():.0f} s")
    if not hands.tell(machine, verdict.tell, version=version, now=now):
        return Verdict(S(change.step), "the node changed while it was looked at")
    return verdict


def wanted_by(change: LayoutChange) -> Wanted:
    name = name_of(change.cuts)
    return Wanted(name, alias_of(name), slots_of(change.cuts.values()))


def _standing(change: LayoutChange, held: int, now: datetime) -> Standing:
    return Standing(S(change.step), now - change.step_at, held, change.attempts, change.tries > 0)


def _held(change: LayoutChange) -> int:
    with as_staff():
        return Allocation.objects.filter(gpu__node_id=change.node_id, released_at=None).count()


@transaction.atomic
def _apply(change: LayoutChange, verdict: Verdict, now: datetime) -> None:
    if verdict.step == change.step:
        _look_again(change, verdict, now)
        return
    if not move(change, verdict.step, why=verdict.why, now=now):
        return  # somebody was faster; what was seen is outdated
    if change.step == S.DONE:
        cards.write(change.node_id, change.cuts)
    if change.over:
        _serve(change, now)
    else:
        doorbell.ring("broker.recut", change.pk, now=now)


def _look_again(change: LayoutChange, verdict: Verdict, now: datetime) -> None:
    after = WAIT_FOR_LEASES if change.step == S.DRAINING else LOOK_AGAIN
    after = BETWEEN_NAMES if verdict.tell else after
    LayoutChange.objects.filter(pk=change.pk, seq=change.seq).update(
        why=verdict.why[:LONGEST], due_at=now + after, claimed_until=None
    )


def _serve(change: LayoutChange, now: datetime) -> None:
    """Let whoever waits for a card of the node's pools try."""
    region = change.node.cluster.region
    for model in Gpu.objects.filter(node_id=change.node_id).values_list("gpu_model", flat=True).distinct():
        doorbell.ring("broker.serve", f"{model}|{region}", now=now)


def blinds(lease: Lease) -> bool:
    """Tell whether a node that a lease lies on is at work on its cards, so that its report of them is worth nothing."""
    places = lease.allocations.filter(generation=lease.generation, released_at=None)
    cards = places.values("gpu__node")
    return LayoutChange.objects.filter(node__in=cards, step__in=[each.value for each in BLIND]).exists()


def due(*, now: datetime) -> list[Hint]:
    """Return the changes that somebody should look at now."""
    idle = Q(claimed_until=None) | Q(claimed_until__lt=now)
    rows = LayoutChange.objects.under_way().filter(idle, due_at__lte=now).order_by("due_at", "id")
    return [("broker.recut", pk, "") for pk in rows.values_list("id", flat=True)[:BATCH]]
