"""The cards of one pool, in buckets of equal state, so that a choice looks at states and never at cards."""

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from broker.domain.geometry import EMPTY, CardState, Geometry
from broker.domain.gpu_models import GpuModelSpec
from broker.domain.packing import most_of
from broker.domain.placement.ranking import Ranking, Score, ranking_of
from broker.domain.profiles import Placement, Profile
from broker.domain.states import Isolation


@dataclass(frozen=True, slots=True)
class CardView:
    """One card as placement sees it; a layout fixes its cut in advance, None leaves the cut to us."""

    gpu: str
    node: str
    state: CardState = EMPTY
    layout: Geometry | None = None


@dataclass(frozen=True, slots=True)
class Seat:
    """A place for one slice."""

    gpu: str
    placement: Placement


class Choice(NamedTuple):
    """A seat with what it costs, so that choices can be compared."""

    score: Score
    seat: Seat


class EmptyCards:
    """Uncut cards, those on the node with fewest of them first: whole nodes stay whole for gangs."""

    def __init__(self) -> None:
        self._on: dict[str, list[str]] = {}
        self._nodes: list[tuple[int, str]] = []

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def __len__(self) -> int:
        return sum(count for count, _ in self._nodes)

    def first(self) -> str:
        return self._on[self._nodes[0][1]][0]

    def add(self, card: CardView) -> None:
        self._recount(card.node, gone=None, come=card.gpu)

    def discard(self, card: CardView) -> None:
        self._recount(card.node, gone=card.gpu, come=None)

    def _recount(self, node: str, *, gone: str | None, come: str | None) -> None:
        free = self._on.setdefault(node, [])
        if free:
            _drop(self._nodes, (len(free), node))
        if come:
            insort(free, come)
        if gone:
            _drop(free, gone)
        if free:
            insort(self._nodes, (len(free), node))


class PoolIndex:
    """The cards of one GpuModel that may serve each other's requests."""

    def __init__(self, model: GpuModelSpec, cards: Iterable[CardView] = ()) -> None:
        self.model = model
        self._cards: dict[str, CardView] = {}
        self._empty = EmptyCards()
        self._buckets: dict[tuple[CardState, Geometry | None], list[str]] = {}
        self._rankings: dict[tuple[Isolation, Geometry | None], Ranking] = {}
        for card in cards:
            self.add(card)

    def add(self, card: CardView) -> None:
        """Take a card in, or raise ValueError when it is in the pool already."""
        if card.gpu in self._cards:
            raise ValueError(f"card {card.gpu} is in the pool already; remove it before adding it again")
        self._cards[card.gpu] = card
        if card.state.empty and card.layout is None:
            self._empty.add(card)
        else:
            insort(self._buckets.setdefault((card.state, card.layout), []), card.gpu)

    def remove(self, gpu: str) -> CardView:
        """Take a card out and return it as it is now."""
        card = self._cards.pop(gpu)
        if card.state.empty and card.layout is None:
            self._empty.discard(card)
            return card
        bucket = self._buckets[card.state, card.layout]
        _drop(bucket, gpu)
        if not bucket:
            del self._buckets[card.state, card.layout]
        return card

    def card(self, gpu: str) -> CardView:
        return self._cards[gpu]

    def choose(self, profile: Profile) -> Seat | None:
        """Return the free seat that costs the fleet least, or None when there is none."""
        choice = self.weigh(profile)
        return choice.seat if choice else None

    def weigh(self, profile: Profile) -> Choice | None:
        """Choose, and say what the choice costs."""
        best: tuple[Score, str, Placement] | None = None
        for (state, layout), gpus in self._buckets.items():
            if ranked := self._ranking(profile.isolation, layout).best(state, profile):
                candidate = (ranked.score, gpus[0], ranked.placement)
                best = candidate if best is None else min(best, candidate)
        if self._empty and (ranked := self._ranking(profile.isolation, None).best(EMPTY, profile)):
            candidate = (ranked.score, self._empty.first(), ranked.placement)
            best = candidate if best is None or ranked.score < best[0] else best
        return Choice(best[0], Seat(best[1], best[2])) if best else None

    def hold(self, seat: Seat, profile: Profile) -> None:
        """Take a seat, or raise ValueError when it is not free."""
        card = self._cards[seat.gpu]
        self._become(card, card.state.with_held(profile, seat.placement))

    def release(self, seat: Seat, profile: Profile) -> None:
        """Give a seat back, or raise ValueError when it was not held."""
        card = self._cards[seat.gpu]
        self._become(card, card.state.without(profile, seat.placement))

    def how_many_fit(self, profile: Profile) -> int:
        """Return exactly how many of a profile could be placed now, one after the other."""
        room = len(self._empty) * most_of(profile, EMPTY, None)
        return room + sum(len(gpus) * most_of(profile, *key) for key, gpus in self._buckets.items())

    def _become(self, card: CardView, state: CardState) -> None:
        self.remove(card.gpu)
        self.add(replace(card, state=state))

    def _ranking(self, isolation: Isolation, layout: Geometry | None) -> Ranking:
        known = self._rankings.get((isolation, layout))
        if known is None:
            known = self._rankings[isolation, layout] = ranking_of(self.model, isolation, layout)
        return known


def _drop(ordered: list[Any], item: Any) -> None:
    del ordered[bisect_left(ordered, item)]
