"""The cards of one pool by their ids: where a slice goes, what is held, and how much still fits."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import NamedTuple

from broker.domain.geometry import EMPTY, CardState
from broker.domain.gpu_models import GpuModelSpec
from broker.domain.placement.engines import Engine
from broker.domain.placement.kinds import Kind, Name, kind_of, must_be_of
from broker.domain.placement.makes import Machines, Makes, Member
from broker.domain.placement.rules import Cost
from broker.domain.placement.seats import Seat
from broker.domain.placement.shelves import Nodes, Shelf
from broker.domain.placement.tables import EMPTY as UNTOUCHED
from broker.domain.placement.warmth import Warm, after_placing, after_release
from broker.domain.profiles import Profile
from broker.domain.published import Cut


@dataclass(frozen=True, slots=True)
class CardView:
    """One card as placement sees it; a Geometry fixes its cut in advance, anything else leaves the cut to us.

    `warm` is what is left cut on it by leases that have gone; None: nothing ever is.
    """

    gpu: str
    node: str
    state: CardState = EMPTY
    layout: Cut = None
    warm: Warm | None = None


class Choice(NamedTuple):
    """A seat with what it costs, so that choices can be compared."""

    score: Cost
    seat: Seat


Offer = tuple[Shelf, int]  # where a profile is sold, and its number there


class PoolIndex:
    """The cards of one GpuModel that may serve each other's requests.

    What it chooses depends on the cards alone, never on their order or on what was held before: of equal cards
    one where nothing need be cut, then one where nothing that is left cut need be destroyed, then the one with the
    lowest id; of equal nodes the one with the lowest.
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
        self._shelves: dict[Cut, Shelf] = {}
        self._selling: dict[Name, list[Offer]] = {}  # as far as it was asked for since a shelf was put up
        self._machines: Machines | None = None  # once a gang has asked for one node
        for layout, together in self._by_layout(cards).items():
            self._put_up(layout, together)

    def add(self, card: CardView) -> None:
        """Take a card in, or raise ValueError when it is in the pool already."""
        if card.gpu in self._cards:
            raise _twice(card)
        self._cards[card.gpu] = card
        shelf = self._shelves.get(card.layout) or self._put_up(card.layout, ())
        shelf.add(
            card.gpu,
            self._nodes.number(card.node),
            shelf.kind.state(card.state),
            self._left(shelf.kind, card),
        )
        if self._machines:
            self._machines.came(card.gpu, card.node)

    def remove(self, gpu: str) -> CardView:
        """Take a card out and return it as it is now."""
        card = self._cards.pop(gpu)
        self._shelves[card.layout].remove(gpu)
        if self._machines:
            self._machines.left(gpu, card.node)
        return card

    def card(self, gpu: str) -> CardView:
        return self._cards[gpu]

    def choose(self, profile: Profile) -> Seat | None:
        """Return the free seat that costs the fleet least, or None when there is none."""
        found = self._cheapest(profile)
        return found[2] if found else None

    def weigh(self, profile: Profile) -> Choice | None:
        """Choose, and say what the choice costs; raises ValueError for a profile of another model."""
        found = self._cheapest(profile)
        return Choice(_cost(*found[:2]), found[2]) if found else None

    def _cheapest(self, profile: Profile) -> tuple[Offer, int, Seat] | None:
        """Return where the cheapest seat is: on which shelf as which number, at which rank, and the seat."""
        selling = self.selling(profile)
        if len(selling) == 1:  # as in most pools
            rank = _lowest_rank(selling[0])
            return None if rank is None else (selling[0], rank, self._seat(selling[0], rank))
        ranks = [(offer, rank) for offer in selling if (rank := _lowest_rank(offer)) is not None]
        if not ranks:
            return None
        # Of equals, a card that is cut already is no loss to whoever wants another cut.
        keys = [(_cost(offer, rank).anywhere, self.is_uncut(offer[0])) for offer, rank in ranks]
        least = min(keys)
        equal = [
            (offer, rank, self._seat(offer, rank))
            for (offer, rank), key in zip(ranks, keys, strict=True)
            if key == least
        ]
        return min(equal, key=lambda found: (found[2].gpu, found[2].placement.start))

    def _seat(self, offer: Offer, rank: int) -> Seat:
        shelf, number = offer
        gpu, start = self._first(shelf, number, rank)
        return Seat(gpu, shelf.kind.placement[number][start])

    def hold(self, seat: Seat, profile: Profile) -> None:
        """Take a seat, or raise ValueError when it is not free."""
        card = self._cards[seat.gpu]
        warm = card.warm and after_placing(card.warm, profile, seat.placement)
        self._be(replace(card, state=card.state.with_held(profile, seat.placement), warm=warm))

    def release(self, seat: Seat, profile: Profile) -> None:
        """Give a seat back, or raise ValueError when it was not held; its slice may be left cut."""
        card = self._cards[seat.gpu]
        warm = None if card.warm is None else after_release(card.warm, profile, seat.placement)
        self._be(replace(card, state=card.state.without(profile, seat.placement), warm=warm))

    @contextmanager
    def trying(self) -> Iterator[Callable[[Seat, Profile], None]]:
        """Let seats be held until the block ends; then every card is as it was, with what was left cut on it."""
        before: list[CardView] = []

        def hold(seat: Seat, profile: Profile) -> None:
            card = self._cards[seat.gpu]
            self.hold(seat, profile)
            before.append(card)

        try:
            yield hold
        finally:
            for card in reversed(before):
                self._be(card)

    def how_many_fit(self, profile: Profile) -> int:
        """Return exactly how many of a profile could be placed now, one after the other."""
        return sum(
            shelf.buckets.count(state) * most
            for shelf, number in self.selling(profile)
            for state, most in enumerate(shelf.kind.most[number])
            if most
        )

    def _by_layout(self, cards: Iterable[CardView]) -> dict[Cut, list[CardView]]:
        together: defaultdict[int, list[CardView]] = defaultdict(list)
        for card in cards:
            if card.gpu in self._cards:
                raise _twice(card)
            self._cards[card.gpu] = card
            # By identity first: a fleet has few layouts, and each is hashed once then.
            together[id(card.layout)].append(card)
        found: dict[Cut, list[CardView]] = {}
        for its in together.values():
            found.setdefault(its[0].layout, []).extend(its)
        return found

    def _put_up(self, layout: Cut, cards: Sequence[CardView]) -> Shelf:
        kind = kind_of(self.model, layout, self._prices, self.engine)
        states = [kind.state(card.state) for card in cards]
        on = [self._nodes.number(card.node) for card in cards]
        left = [self._left(kind, card) for card in cards]
        shelf = Shelf(kind, [card.gpu for card in cards], on, states, left, self._nodes)
        self._shelves[layout] = shelf
        self._selling.clear()
        return shelf

    def makes(self, profile: Profile) -> Makes:
        """Return the nodes by what of a profile fits on them; raises ValueError for a profile of another model."""
        self.selling(profile)
        if self._machines is None:
            together = ((card.gpu, card.node) for card in self._cards.values())
            self._machines = Machines(together, fitting=self._fitting, everywhere=self._everywhere)
        return self._machines.makes(profile, whole=profile.memory == self.model.grid)

    def linked_anew(self, node: str) -> None:
        """Take note that the cards of a node reach each other otherwise than before."""
        if self._machines:
            self._machines.changed(node)

    def _everywhere(self, profile: Profile) -> dict[str, list[Member]]:
        found: defaultdict[str, list[Member]] = defaultdict(list)
        for shelf, number in self.selling(profile):
            kind, uncut = shelf.kind, self.is_uncut(shelf)
            for state in kind.ranks.order[number]:
                for gpu, node in shelf.cards_in(state):
                    found[node].append(Member(gpu, kind, number, state, uncut))
        return found

    def _fitting(self, gpus: Iterable[str], profile: Profile) -> list[Member]:
        found, name = [], (profile.name, profile.isolation)
        for gpu in gpus:
            shelf = self._shelves[self._cards[gpu].layout]
            number, state = shelf.kind.number.get(name), shelf.state(gpu)
            if number is not None and state in shelf.kind.cost[number]:
                found.append(Member(gpu, shelf.kind, number, state, self.is_uncut(shelf)))
        return found

    def is_uncut(self, shelf: Shelf) -> bool:
        """Tell whether the cards of a shelf are yet to be cut."""
        return not shelf.kind.fixed

    def selling(self, profile: Profile) -> list[Offer]:
        """Return the shelves that have a profile, each with its number there."""
        name = (profile.name, profile.isolation)
        if (found := self._selling.get(name)) is None:
            found = [(s, s.kind.number[name]) for s in self._shelves.values() if name in s.kind.number]
            if not found:
                must_be_of(self.model, profile)
            self._selling[name] = found
        return found

    def _first(self, shelf: Shelf, number: int, rank: int) -> tuple[str, int]:
        """Return the first of the cards that cost least and the first unit there."""
        ranks = shelf.kind.ranks
        order, cost = ranks.order[number], ranks.cost[number]
        if self.engine.takes_first:
            alike = takewhile(lambda other: cost[other] == cost[rank], range(rank, len(order)))
            live = shelf.buckets.live[number]
            gpu = min(shelf.first(order[other]) for other in alike if live >> other & 1)
            return gpu, ranks.best[number][shelf.state(gpu)].start
        # An uncut one of the node with fewest: whole nodes stay whole for gangs.
        is_empty = order[rank] == UNTOUCHED and self.is_uncut(shelf)
        return shelf.quickest_empty(number) if is_empty else shelf.quickest(number, rank)

    def _be(self, card: CardView) -> None:
        """Have a card that is in the pool as it is now."""
        self._cards[card.gpu] = card
        shelf = self._shelves[card.layout]
        shelf.become(card.gpu, shelf.kind.state(card.state), self._left(shelf.kind, card))
        if self._machines:
            self._machines.changed(card.node)

    def _left(self, kind: Kind, card: CardView) -> int:
        """Return what is left cut on a card as its kind counts it; the older rules do not know of it."""
        return kind.seats.of(card.warm) if card.warm and not self.engine.takes_first else 0


def _lowest_rank(offer: Offer) -> int | None:
    """Return the rank of what costs least on a shelf; None where nothing is free."""
    shelf, number = offer
    live = shelf.buckets.fits_at(number)
    return (live & -live).bit_length() - 1 if live else None


def _cost(offer: Offer, rank: int) -> Cost:
    shelf, number = offer
    return shelf.kind.cost[number][shelf.kind.ranks.order[number][rank]]


def _twice(card: CardView) -> ValueError:
    return ValueError(f"card {card.gpu} is in the pool already; remove it before adding it again")
