"""Where every second of every unit of the fleet went since a moment, in whole numbers. Must run as staff."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from django.db import connection

from broker.domain.geometry import EMPTY
from broker.domain.packing import fragmented_mask
from broker.domain.profiles import Placement, Profile
from broker.models import Health, InventoryChange, NodeState
from broker.services.catalogue import shape
from broker.services.fleet.uses import SCALE, Card, Use, use_when_free

# Seconds are floored as the ledger's are; flooring keeps order, so what did not overlap still does not.
# Sold is what the ledger calls active: the same seconds that are charged.
HELD = """
SELECT a.gpu_id, a.isolation, lower(a.placement), upper(a.placement) - lower(a.placement), a.profile, o.price_class,
       greatest(floor(extract(epoch FROM a.held_at))::bigint, %(since)s),
       least(floor(extract(epoch FROM a.released_at))::bigint, %(until)s), sold.since, sold.until
  FROM broker_allocation a JOIN broker_lease l ON l.id = a.lease_id JOIN broker_offering o ON o.id = l.offering_id
  LEFT JOIN LATERAL (
       SELECT extract(epoch FROM min(t.at))::bigint AS since,
              extract(epoch FROM max(coalesce(n.at, to_timestamp(%(until)s))))::bigint AS until
         FROM broker_transition t
         LEFT JOIN broker_transition n ON n.lease_id = t.lease_id AND n.seq = t.seq + 1
        WHERE t.lease_id = a.lease_id AND t.generation = a.generation AND t.after = 'active') sold ON true
 WHERE a.held_at < to_timestamp(%(until)s)
   AND (a.released_at IS NULL OR a.released_at > to_timestamp(%(since)s))
"""
Outage = tuple[int, int, Use]


@dataclass(frozen=True, slots=True)
class Held:
    """One slice in the window: taken, sold for part of it, given back."""

    placement: Placement
    profile: Profile
    since: int
    until: int
    sold_since: int
    sold_until: int
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
        first = min(max(start, int(card.since.timestamp())), end)
        total += end - first
        for use, units, seconds in _spent(card, held[card.id], outages[card.id], first, end):
            spent[use, card.grid] += units * seconds
    by_use = dict.fromkeys(Use, 0)
    for (use, grid), unit_seconds in spent.items():
        by_use[use] += unit_seconds * SCALE // grid
    return Hours(total * SCALE, by_use)


def _spent(
    card: Card, held: Sequence[Held], outages: Sequence[Outage], start: int, end: int
) -> Iterator[tuple[Use, int, int]]:
    """Walk one card from change to change: (use, units, seconds)."""
    moments = {start, end}
    for h in held:
        moments |= {m for m in (h.since, h.until, h.sold_since, h.sold_until) if start < m < end}
    moments |= {m for outage in outages for m in outage[:2] if start < m < end}
    edges = sorted(moments)
    for at, then in pairwise(edges):
        state, seconds = EMPTY, then - at
        for h in held:
            if h.since <= at < h.until:
                state = state.with_held(h.profile, h.placement)
                sold = h.sold_since <= at < h.sold_until
                yield h.use if sold else Use.RESERVED, h.placement.size, seconds
        idle = next((use for since, until, use in outages if since <= at < until), None)
        free = card.grid - state.mask.bit_count()
        lost = 0 if idle or not free else _lost(card, state)
        yield idle or Use.FREE, free - lost, seconds
        yield Use.FRAGMENTED, lost, seconds


def _lost(card: Card, state: Any) -> int:
    return fragmented_mask(state, card.offered, grid=card.grid, layout=card.layout).bit_count()


def _held(cards: Sequence[Card], start: int, end: int) -> defaultdict[str, list[Held]]:
    found: defaultdict[str, list[Held]] = defaultdict(list)
    models = {card.id: card.model for card in cards}
    with connection.cursor() as cursor:
        cursor.execute(HELD, {"since": start, "until": end})
        for gpu, isolation, at, size, profile, price_class, since, until, sold_since, sold_until in cursor:
            found[gpu].append(
                Held(
                    Placement(at, size),
                    shape(models[gpu], profile, isolation),
                    since,
                    end if until is None else until,
                    end if sold_since is None else max(sold_since, since),
                    end if sold_until is None else sold_until,
                    Use.SPOT if price_class == "spot" else Use.SOLD,
                )
            )
    return found


def _outages(moment: datetime, cards: Sequence[Card], end: int) -> dict[str, list[Outage]]:
    """Return when each card could not be sold: worse news first."""
    changes: defaultdict[str, list[tuple[int, str, str]]] = defaultdict(list)
    rows = InventoryChange.objects.filter(at__gt=moment).order_by("at", "id")
    for at, node, gpu, before, after in rows.values_list("at", "node_id", "gpu_id", "before", "after"):
        changes[gpu or node].append((int(at.timestamp()), before, after))
    start = int(moment.timestamp())
    found = {}
    for card in cards:
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
