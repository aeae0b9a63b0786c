"""What waits for an operator, worst first. Must run as staff."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Q

from broker.domain.repartition import Step
from broker.domain.states import LeaseState
from broker.models import Health, Lease, NodeState
from broker.services.fleet.queue import Figures
from broker.services.fleet.uses import Card

STUCK_AFTER = timedelta(minutes=2)  # pods come and go within seconds; two minutes is no latency any more
SHOWN = 8


class Kind(StrEnum):
    NODE = "node"
    CARD = "card"
    LEASE = "lease"
    QUEUE = "queue"
    OFFERINGS = "offerings"
    CLUSTER = "cluster"
    FROZEN = "frozen"
    ORPHANS = "orphans"
    PLAN = "plan"
    DISPUTES = "disputes"
    CORRECTIONS = "corrections"


@dataclass(frozen=True, slots=True)
class Need:
    """One thing to look at: what, why, since when, and what page deals with it."""

    kind: Kind
    what: str
    why: str
    subject: str = ""
    since: datetime | None = None
    urgent: bool = False


def needs(cards: Sequence[Card], queue: Figures, *, now: datetime) -> list[Need]:
    """Return everything that waits for an operator; one query."""
    return [*_nodes(cards), *_cards(cards), *stuck(now=now), *_queue(queue, now), *_unoffered(cards)]


def _nodes(cards: Sequence[Card]) -> Iterable[Need]:
    nodes: dict[str, list[Card]] = {}
    for card in cards:
        nodes.setdefault(card.node, []).append(card)
    for node, its in nodes.items():
        name = f"{its[0].cluster_name} / {its[0].node_name}"
        held = len({s.lease for card in its for s in card.slices})
        if its[0].node_state is NodeState.LOST:
            why = f"{len(its)} cards, {_leases(held)} still on them"
            yield Need(Kind.NODE, f"{name} is lost", why, node, its[0].node_since, urgent=True)
        elif its[0].cutting == Step.QUARANTINED:
            why = "cutting its cards failed; it stays closed until you decide"
            yield Need(Kind.NODE, f"{name} is quarantined", why, node, urgent=True)
        elif its[0].node_state is NodeState.DRAINING and not held:
            yield Need(
                Kind.NODE, f"{name} is drained", "nothing runs there any more", node, its[0].node_since
            )


def _cards(cards: Iterable[Card]) -> Iterable[Need]:
    for card in cards:
        if card.unreadable:
            why = f"{card.unreadable}; nothing new is placed on it; {_leases(len(card.slices))} still on it"
            yield Need(Kind.CARD, f"The books of {card.where} cannot be right", why, card.id, urgent=True)
        if card.health is Health.UNHEALTHY:
            why = card.health_reason or "no reason was given"
            if card.slices:
                why += f"; {_leases(len(card.slices))} still on it"
            yield Need(Kind.CARD, f"{card.where} is unhealthy", why, card.id, card.health_since, urgent=True)


def stuck(*, now: datetime) -> Iterable[Need]:
    """Name leases that should have moved on long ago."""
    moving = [S.value for S in (LeaseState.PROVISIONING, LeaseState.STOPPING, LeaseState.RELEASING)]
    rows = Lease.objects.select_related("tenant").filter(
        Q(state=LeaseState.FAILED) | Q(state__in=moving, at__lt=now - STUCK_AFTER)
    )
    for lease in rows.order_by("at", "id")[:SHOWN]:
        why = str(lease.progress.get("text", "")) or f"{lease.tries} tries so far"
        failed = lease.state == LeaseState.FAILED
        what = f"{lease.name} of {lease.tenant.name} {'failed' if failed else f'is stuck {lease.state}'}"
        yield Need(Kind.LEASE, what, why, lease.pk, lease.at, urgent=failed)


def _queue(queue: Figures, now: datetime) -> Iterable[Need]:
    if queue.overdue and queue.oldest:
        why = "cards are kept for it that younger leases could use"
        yield Need(Kind.QUEUE, "A lease waits past patience", why, since=now - queue.oldest)


def _unoffered(cards: Iterable[Card]) -> Iterable[Need]:
    pools = {(card.model, card.region): 0 for card in cards if not card.wares.offered}
    for card in cards:
        if not card.wares.offered:
            pools[card.model, card.region] += 1
    for (model, region), count in sorted(pools.items()):
        yield Need(Kind.OFFERINGS, f"Nothing of {model} is sold in {region}", f"{count} cards earn nothing")


def _leases(count: int) -> str:
    return {0: "no lease", 1: "one lease"}.get(count, f"{count} leases")
