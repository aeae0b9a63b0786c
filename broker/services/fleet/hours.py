"""Where every second of every unit of the fleet went since a moment, in whole numbers. Must run as staff."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from django.db import connection

from broker.domain.geometry import CardState
from broker.domain.states import Isolation, PriceClass
from broker.models import Health, InventoryChange, NodeState
from broker.services.catalogue import shape
from broker.services.fleet.uses import SCALE, Card, Use, use_when_free

# Seconds are floored as the ledger's are; flooring keeps order, so what did not overlap still does not.
# Sold is what the ledger calls active, the same seconds that are charged. What is held now came with the cards:
# asked for is only what was given back or stopped being active since.
ENDED = """
WITH ended AS (
  SELECT begun.lease_id, begun.generation, extract(epoch FROM min(begun.at))::bigint AS since,
         extract(epoch FROM max(step.at))::bigint AS until
    FROM broker_transition step
    JOIN broker_transition begun ON begun.lease_id = step.lease_id AND begun.seq = step.prev_seq
   WHERE step.before = 'active' AND step.at > to_timestamp(%(since)s)
   GROUP BY 1, 2), changed AS (
  SELECT id FROM broker_allocation WHERE released_at > to_timestamp(%(since)s)
   UNION
  SELECT a.id FROM ended JOIN broker_allocation a USING (lease_id, generation) WHERE a.released_at IS NULL)
SELECT a.gpu_id, a.lease_id, a.isolation, lower(a.placement), upper(a.placement) - lower(a.placement), a.profile,
       o.price_class, extract(epoch FROM a.held_at)::float8,
       least(coalesce(floor(extract(epoch FROM a.released_at))::bigint, %(until)s), %(until)s),
       coalesce(ended.since, CASE WHEN runs.now THEN extract(epoch FROM l.at)::bigint END, %(until)s),
       CASE WHEN runs.now THEN %(until)s ELSE coalesce(ended.until, %(until)s) END
  FROM changed JOIN broker_allocation a USING (id)
  JOIN broker_lease l ON l.id = a.lease_id JOIN broker_offering o ON o.id = l.offering_id
  LEFT JOIN ended ON ended.lease_id = a.lease_id AND ended.generation = a.generation
 CROSS JOIN LATERAL (SELECT l.state = 'active' AND l.generation = a.generation AS now) runs
 WHERE a.held_at < to_timestamp(%(until)s)
"""
Outage = tuple[int, int, Use]
Kind = tuple[bool, Isolation]  # whether a slice has the media engines, and its isolation


class Held(NamedTuple):
    """One slice in the window: taken, sold for part of it, given back."""

    bits: int
    size: int
    media: bool
    isolation: Isolation
    since: int
    until: int
    sold_s: int
    use: Use


@dataclass(frozen=True)
class Hours:
    """Seconds × SCALE of a card by use; `total` is counted from the cards alone."""

    total: int
    by_use: dict[Use, int]

    @property
    def explained(self) -> int:
        return sum(self.by_use.values())


def since(moment: datetime, cards: Sequence[Card], *, now: datetime) -> Hours:
    """Account for the fleet from a moment until now."""
    start, end = int(moment.timestamp()), int(now.timestamp())
    held, outages = _held(cards, start, end), _outages(moment, cards, end)
    spent: Counter[tuple[Use, int]] = Counter()
    total = 0
    for card in cards:
        first = min(max(start, card.since_s), end)
        total += end - first
        for h in held[card.id]:
            spent[h.use, card.grid] += h.size * h.sold_s
            spent[Use.RESERVED, card.grid] += h.size * (h.until - h.since - h.sold_s)
        for use, units, seconds in _unheld(card, held[card.id], outages[card.id], first, end):
            spent[use, card.grid] += units * seconds
    by_use = dict.fromkeys(Use, 0)
    for (use, grid), unit_seconds in spent.items():
        by_use[use] += unit_seconds * SCALE // grid
    return Hours(total * SCALE, by_use)


def _unheld(
    card: Card, held: Sequence[Held], outages: Sequence[Outage], start: int, end: int
) -> Iterator[tuple[Use, int, int]]:
    """Walk what nobody held of one card from change to change: (use, units, seconds)."""
    moments = {start, end}
    for h in held:
        moments.add(h.since)
        moments.add(h.until)
    for since, until, _ in outages:
        moments |= {since, until}
    for at, then in pairwise(sorted(m for m in moments if start <= m <= end)):
        state = _state(held, at)
        idle = next((use for since, until, use in outages if since <= at < until), None)
        free = card.grid - state.mask.bit_count()
        lost = 0 if idle or not free else card.wares.lost(state).bit_count()
        yield idle or Use.FREE, free - lost, then - at
        yield Use.FRAGMENTED, lost, then - at


def _state(held: Iterable[Held], at: int) -> CardState:
    """Return what decides which units are worth anything beside what is held at a moment."""
    mask, media, isolation = 0, False, None
    for h in held:
        if h.since <= at < h.until:
            mask, media, isolation = mask | h.bits, media or h.media, h.isolation
    return CardState(mask, media, 0, isolation)


def _held(cards: Sequence[Card], start: int, end: int) -> dict[str, list[Held]]:
    """Return what lay on each card in the window. A place read twice, held and as it ended since, counts once."""
    found: dict[str, dict[tuple[str, int, float], Held]] = {card.id: {} for card in cards}
    models = {card.id: card.model for card in cards}
    with connection.cursor() as cursor:
        cursor.execute(ENDED, {"since": start, "until": end})
        for gpu, lease, isolation, at, size, name, price_class, held_s, until, *sold in cursor.fetchall():
            kind, since = _kind(models[gpu], name, isolation), max(int(held_s), start)
            sold_s = max(0, min(until, sold[1]) - max(since, sold[0]))
            found[gpu][lease, at, held_s] = _lying(kind, at, size, since, until, sold_s, price_class)
    for card in cards:
        ended = found[card.id]
        for s in card.slices:
            if (which := (s.lease, s.start, s.held_s)) not in ended:
                kind = _kind(card.model, s.profile, card.state.isolation or "")
                since = min(max(int(s.held_s), start), end)
                sold_s = 0 if s.sold_s is None else max(0, end - max(since, s.sold_s))
                ended[which] = _lying(kind, s.start, s.size, since, end, sold_s, s.price_class)
    return {gpu: list(lying.values()) for gpu, lying in found.items()}


@lru_cache(maxsize=4096)
def _kind(model: str, profile: str, isolation: str) -> Kind:
    try:
        return shape(model, profile, isolation).media, Isolation(isolation)
    except ValueError:  # no such profile: the card itself says that its books cannot be right
        return False, Isolation(isolation)


def _lying(kind: Kind, at: int, size: int, since: int, until: int, sold_s: int, price_class: str) -> Held:
    use = Use.SPOT if price_class == PriceClass.SPOT else Use.SOLD
    return Held(((1 << size) - 1) << at, size, *kind, since, until, sold_s, use)


def _outages(moment: datetime, cards: Sequence[Card], end: int) -> dict[str, list[Outage]]:
    """Return when each card could not be sold: worse news first."""
    changes: defaultdict[str, list[tuple[int, str, str]]] = defaultdict(list)
    rows = InventoryChange.objects.filter(at__gt=moment).order_by("at", "id")
    for at, node, gpu, before, after in rows.values_list("at", "node_id", "gpu_id", "before", "after"):
        changes[gpu or node].append((int(at.timestamp()), before, after))
    start = int(moment.timestamp())
    found: dict[str, list[Outage]] = {}
    for card in cards:
        if card.id not in changes and card.node not in changes:
            use = use_when_free(card.health, card.node_state)
            found[card.id] = [(start, end, use)] if use else []
            continue
        itself = _spans(changes[card.id], card.health, start, end)
        under = _spans(changes[card.node], card.node_state, start, end)
        outages = [(s, e, use_when_free(Health(word), NodeState.READY)) for s, e, word in itself]
        outages += [(s, e, use_when_free(Health.HEALTHY, NodeState(word))) for s, e, word in under]
        wrong = [(s, e, use) for s, e, use in outages if use is not None]
        found[card.id] = sorted(wrong, key=lambda outage: outage[2] is not Use.UNHEALTHY)
    return found


def _spans(
    changes: Iterable[tuple[int, str, str]], now: str, start: int, end: int
) -> Iterator[tuple[int, int, str]]:
    """Turn changes since the start, and the word that holds now, into spans of one word each."""
    word, since = now, start
    for at, before, after in changes:
        at = min(max(at, since), end)
        yield since, at, before
        word, since = after, at
    yield since, end, word


def midnight(now: datetime) -> datetime:
    """Return the beginning of the day (UTC), as operators count days."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
