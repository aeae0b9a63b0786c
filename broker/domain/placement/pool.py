"""The cards of one pool by their ids: where a slice goes, what is held, and how much still fits."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from broker.domain.geometry import EMPTY, CardState, Geometry
from broker.domain.gpu_models import GpuModelSpec
from broker.domain.placement.engines import Engine
from broker.domain.placement.kinds import Name, kind_of, must_be_of
from broker.domain.placement.rules import Cost
from broker.domain.placement.shelves import Nodes, Shelf
from broker.domain.placement.tables import EMPTY as UNTOUCHED
from broker.domain.profiles import Placement, Profile


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

    score: Cost
    seat: Seat


class PoolIndex:
    """The cards of one GpuModel that may serve each other's requests.

    What it chooses depends on the cards alone, never on their order or on what was held before: of equal cards
    the one with the lowest id, of equal nodes the one with the lowest.
    """

    def __init__(
        self,
        model: GpuModelSpec,
        cards: Iterable[CardView] = (),
        *,
        price_list: Mapping[Name, float] | None = None,
        engine: Engine = Engine.BID_PRICE,
    ) -> None:
        self.model, self.engine = model, engine
        self._prices = tuple(sorted((price_list or {}).items()))
        self._cards: dict[str, CardView] = {}
        self._nodes = Nodes()
        self._shelves: dict[Geometry | None, Shelf] = {}
        for layout, together in self._by_layout(cards).items():
            self._put_up(layout, together)

    def add(self, card: CardView) -> None:
        """Take a card in, or raise ValueError when it is in the pool already."""
        if card.gpu in self._cards:
            raise _twice(card)
        self._cards[card.gpu] = card
        shelf = self._shelves.get(card.layout) or self._put_up(card.layout, ())
        shelf.add(card.gpu, self._nodes.number(card.node), shelf.kind.state(card.state))

    def remove(self, gpu: str) -> CardView:
        """Take a card out and return it as it is now."""
        card = self._cards.pop(gpu)
        self._shelves[card.layout].remove(gpu)
        return card

    def card(self, gpu: str) -> CardView:
        return self._cards[gpu]

    def choose(self, profile: Profile) -> Seat | None:
        """Return the free seat that costs the fleet least, or None when there is none."""
        choice = self.weigh(profile)
        return choice.seat if choice else None

    def weigh(self, profile: Profile) -> Choice | None:
        """Choose, and say what the choice costs; raises ValueError for a profile of another model."""
        best: tuple[tuple[bool, float, int], bool, str, int] | None = None
        score = None
        for shelf, number in self.selling(profile):
            live, ranks = shelf.buckets.live[number], shelf.kind.ranks
            if not live:
                continue
            rank = (live & -live).bit_length() - 1
            cost, uncut = shelf.kind.cost[number][ranks.order[number][rank]], self.is_uncut(shelf)
            # Of equals, a card that is cut already is no loss to whoever wants another cut.
            if best is None or (cost.anywhere, uncut) <= best[:2]:
                gpu = self._first(shelf, number, rank)
                start = ranks.best[number][shelf.state(gpu)].start
                candidate = (cost.anywhere, uncut, gpu, start)
                if best is None or candidate < best:
                    best, score = candidate, cost
        if best is None or score is None:
            return None
        return Choice(score, Seat(best[2], Placement(best[3], profile.memory)))

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
        return sum(
            len(cards) * most
            for shelf, number in self.selling(profile)
            for cards, most in zip(shelf.buckets.cards, shelf.kind.most[number], strict=True)
        )

    def _by_layout(self, cards: Iterable[CardView]) -> dict[Geometry | None, list[CardView]]:
        together: defaultdict[int, list[CardView]] = defaultdict(list)
        for card in cards:
            if card.gpu in self._cards:
                raise _twice(card)
            self._cards[card.gpu] = card
            # By identity first: a fleet has few layouts, and each is hashed once then.
            together[id(card.layout)].append(card)
        found: dict[Geometry | None, list[CardView]] = {}
        for its in together.values():
            found.setdefault(its[0].layout, []).extend(its)
        return found

    def _put_up(self, layout: Geometry | None, cards: Sequence[CardView]) -> Shelf:
        kind = kind_of(self.model, layout, self._prices, self.engine)
        states = [kind.state(card.state) for card in cards]
        on = [self._nodes.number(card.node) for card in cards]
        shelf = Shelf(kind, [card.gpu for card in cards], on, states, self._nodes)
        self._shelves[layout] = shelf
        return shelf

    def is_uncut(self, shelf: Shelf) -> bool:
        """Tell whether the cards of a shelf may still be cut in any way."""
        return shelf is self._shelves.get(None)

    def selling(self, profile: Profile) -> list[tuple[Shelf, int]]:
        """Return the shelves that have a profile, each with its number there."""
        name = (profile.name, profile.isolation)
        found = [(s, s.kind.number[name]) for s in self._shelves.values() if name in s.kind.number]
        if not found:
            must_be_of(self.model, profile)
        return found

    def _first(self, shelf: Shelf, number: int, rank: int) -> str:
        """Return the first of the cards that cost least: those of a rank, or of all that cost the same."""
        ranks = shelf.kind.ranks
        order, cost = ranks.order[number], ranks.cost[number]
        if self.engine.takes_first:
            alike = takewhile(lambda other: cost[other] == cost[rank], range(rank, len(order)))
            live = shelf.buckets.live[number]
            return min(shelf.first(order[other]) for other in alike if live >> other & 1)
        # An uncut one of the node with fewest: whole nodes stay whole for gangs.
        is_empty = order[rank] == UNTOUCHED and self.is_uncut(shelf)
        return shelf.first_empty() if is_empty else shelf.first(order[rank])

    def _become(self, card: CardView, state: CardState) -> None:
        self._cards[card.gpu] = CardView(card.gpu, card.node, state, card.layout)
        shelf = self._shelves[card.layout]
        shelf.become(card.gpu, shelf.kind.state(state))


def _twice(card: CardView) -> ValueError:
    return ValueError(f"card {card.gpu} is in the pool already; remove it before adding it again")
