"""Buckets that know what is left cut on each card: of places that cost the same, one where nothing need be cut.

Cards on which nothing is left cut lie in their buckets as ever. The others lie in cells, one for each state and what
is left cut there; which cells there are is one number, and by profile and cost another says on which of them it is had
how. So what costs least is read off as before, and two numbers more tell where among its equals it is had most quickly.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from broker.domain.placement.buckets import Buckets
from broker.domain.placement.ranks import Ranks
from broker.domain.placement.tables import EMPTY, NOWHERE
from broker.domain.placement.warm_seats import Seats
from broker.domain.placement.warmth import Cutting

Way = tuple[Cutting, int]  # how a profile is had on a card, and its first unit there
# Where a profile is had at the least cost, most quickly: how, on any card of which cells, and on any card on which
# nothing is left cut of the states of which ranks.
Offer = tuple[Cutting, int, int]
# A look at a name of an enumeration takes as long as the rest of a step here.
WARM, FREE, ANEW = Cutting
NO_WAY = ANEW, NOWHERE


class Cell:
    """Cards in one state on which the same slices are left cut."""

    __slots__ = ("bit", "cards", "number", "state", "ways")

    def __init__(self, state: int, number: int, ways: tuple[Way, ...]) -> None:
        self.state, self.number, self.bit = state, number, 1 << number
        self.ways = ways  # by profile
        self.cards: list[int] = []


class WarmBuckets(Buckets):
    """Cards in buckets of equal state and in cells."""

    def __init__(
        self,
        ranks: Ranks,
        nodes: Sequence[int],
        states: Sequence[int] | None = None,
        left: Sequence[int] | None = None,
        seats: Seats | None = None,
    ) -> None:
        """Take one card for each entry; nothing is left cut on it unless `left` says otherwise, as `seats` has it."""
        super().__init__(ranks, nodes, states)
        self.seats = seats or Seats(ranks)
        self._bit, self._keeps = self.seats.bit, self.seats.keeps
        self._order, self._level = ranks.order, ranks.level
        self.left = [0] * len(nodes)
        self.cells: list[Cell] = []
        self._in: list[Cell | None] = [None] * len(nodes)  # by card
        self.cutting = FREE  # what the last slice that was placed took
        self._cell: dict[tuple[int, int], Cell] = {}
        self._of_state: defaultdict[int, list[Cell]] = defaultdict(list)
        self._present = 0  # the cells that are not empty
        self._warm = [0] * (len(ranks.table.states) + 1)  # by state, how many cards are in cells
        self._live = [0] * len(ranks.order)  # as `live`, of cards in cells
        # By cutting and profile, then by level, the cells on which it is had so.
        self._had = [[[0] * len(its) for its in ranks.order] for _ in Cutting]
        # By profile and level, all ranks of it.
        self._equals = [_equals(levels) for levels in ranks.level]
        for card, bits in enumerate(left or ()):
            if bits:
                self.be(card, self.state[card], bits)

    def fits_at(self, profile: int) -> int:
        """Return one bit for every rank at which there is a card."""
        return self.live[profile] | self._live[profile]

    def count(self, state: int) -> int:
        """Return how many cards are in a state."""
        return len(self.cards[state]) + self._warm[state]

    def in_state(self, state: int) -> Iterator[int]:
        """Name all cards in a state."""
        yield from self.cards[state]
        for cell in self._of_state.get(state, ()):
            yield from cell.cards

    def offer(self, profile: int, rank: int) -> Offer:
        """Say where a profile is had most quickly of all that costs as much as a rank; a card there has it."""
        level = self._level[profile][rank]
        present, (warm, free, anew) = self._present, self._had
        if cells := present & warm[profile][level]:
            return WARM, cells, 0
        cells = present & free[profile][level]
        if (cold := self.live[profile] & self._equals[profile][level]) or cells:
            return FREE, cells, cold
        return ANEW, present & anew[profile][level], 0

    def place(self, profile: int) -> tuple[int, int] | None:
        live = self.live[profile] | self._live[profile]
        if not live:
            return None
        rank = (live & -live).bit_length() - 1
        order = self._order[profile]
        if order[rank] == EMPTY:
            self.cutting, card, start = self.first_empty(profile)
        else:
            self.cutting, cells, cold = self.offer(profile, rank)
            if cold:
                state = order[(cold & -cold).bit_length() - 1]
                card, (start, after) = self.cards[state][-1], self.ranks.best[profile][state]
                self.be(card, after, 0)
                return card, start
            cell = self.cells[(cells & -cells).bit_length() - 1]
            card, (_, start) = cell.cards[-1], cell.ways[profile]
        after = self.table.put[profile][start][self.state[card]]
        self.be(card, after, self.left[card] & self._keeps[profile][start])
        return card, start

    def first_empty(self, profile: int) -> tuple[Cutting, int, int]:
        """Return how, on which card and where a profile is had on the node with fewest empty cards."""
        if not self._warm[EMPTY]:
            return FREE, self.empty.first(), self.ranks.best[profile][EMPTY].start
        cards = self.empty.on[self.node[self.empty.first()]]
        (how, start), _, card = min((self.way(profile, card), -n, card) for n, card in enumerate(cards))
        return how, card, start

    def way(self, profile: int, card: int) -> Way:
        """Return how a profile is had on a card on which it fits: of the starts that cost least, the quickest."""
        cell = self._in[card]
        if cell is None:
            return FREE, self.ranks.best[profile][self.state[card]].start
        return cell.ways[profile]

    def hold(self, card: int, profile: int, start: int) -> None:
        after = self.table.put[profile][start][self.state[card]]
        if after == NOWHERE:
            raise KeyError(f"profile {profile} does not fit at unit {start} of card {card}")
        self.be(card, after, self.left[card] & self._keeps[profile][start])

    def release(self, card: int, profile: int, start: int) -> None:
        """Take a slice off, which is left cut there; raises KeyError for one that is not there."""
        after = self.table.gone[profile][start][self.state[card]]
        if after == NOWHERE:
            raise KeyError(f"nothing of profile {profile} is at unit {start} of card {card}")
        self.be(card, after, self.left[card] | self._bit[profile][start])

    def be(self, card: int, state: int, left: int) -> None:
        """Let a card be in another state, with this left cut on it."""
        before = self.state[card]
        if self.left[card] == left and before == state:
            return
        cell = self._in[card]
        cards, at = self.cards[before] if cell is None else cell.cards, self._at[card]
        last = cards.pop()
        if last != card:
            cards[at], self._at[last] = last, at
        if cell is not None:
            self._warm[before] -= 1
        if not cards:
            self._dim(before, cell)
        self.left[card] = left
        cell = self._in[card] = (
            (self._cell.get((state, left)) or self._new_cell(state, left)) if left else None
        )
        cards = self.cards[state] if cell is None else cell.cards
        if not cards:
            self._light_up(state, cell)
        if cell is not None:
            self._warm[state] += 1
        self.state[card], self._at[card] = state, len(cards)
        cards.append(card)
        if before != state:
            if before == EMPTY:
                self.empty.take(self.node[card], card)
            elif state == EMPTY:
                self.empty.give(self.node[card], card)

    def become(self, card: int, state: int) -> None:
        """Let a card be in another state, with nothing left cut on it."""
        self.be(card, state, 0)

    def add(self, node: int, state: int = EMPTY, left: int = 0) -> int:
        """Take one more card in, with what is left cut on it, and return its number."""
        self.left.append(0)
        self._in.append(None)
        card = super().add(node, state)
        self.be(card, state, left)
        return card

    def add_again(self, card: int, node: int, state: int, left: int = 0) -> None:
        """Take a card in under the number of one that is out, with what is left cut on it."""
        self.node[card] = node
        self.empty.grow(node + 1)
        self.be(card, state, left)

    def named(self, cells: int) -> list[Cell]:
        """Return cells by their bits."""
        found = []
        while cells:
            bit = cells & -cells
            found.append(self.cells[bit.bit_length() - 1])
            cells ^= bit
        return found

    def key(self, card: int) -> int:
        """Return the number of the bucket or cell that a card is in."""
        cell = self._in[card]
        return self.state[card] if cell is None else self.key_of(cell)

    def key_of(self, cell: Cell) -> int:
        """Return the number of a cell, which no bucket has."""
        return len(self.cards) + cell.number

    def beside(self, card: int) -> Sequence[int]:
        """Return all cards of the bucket or cell that a card is in."""
        cell = self._in[card]
        return self.cards[self.state[card]] if cell is None else cell.cards

    def _dim(self, state: int, cell: Cell | None) -> None:
        """Note that a bucket or a cell is empty now."""
        live = self.live if cell is None else self._live
        if cell is not None:
            self._present &= ~cell.bit
            if self._warm[state]:
                return
        for profile, bits in enumerate(self.ranks.bit):
            live[profile] &= ~bits[state]

    def _light_up(self, state: int, cell: Cell | None) -> None:
        """Note that there is a card in a bucket or a cell."""
        live = self.live if cell is None else self._live
        if cell is not None:
            self._present |= cell.bit
            if self._warm[state]:
                return
        for profile, bits in enumerate(self.ranks.bit):
            live[profile] |= bits[state]

    def _new_cell(self, state: int, left: int) -> Cell:
        """Number a state with something left cut that was not seen before, and note how each profile is had there."""
        ranks, bit = self.ranks, 1 << len(self.cells)
        ways = []
        for profile, bits in enumerate(ranks.bit):
            way = NO_WAY
            if bits[state]:
                way = self.seats.way(profile, state, left)
                level = ranks.level[profile][bits[state].bit_length() - 1]
                self._had[way[0]][profile][level] |= bit
            ways.append(way)
        cell = self._cell[state, left] = Cell(state, len(self.cells), tuple(ways))
        self.cells.append(cell)
        self._of_state[state].append(cell)
        return cell


def _equals(levels: Sequence[int]) -> list[int]:
    """Return by level the bits of all ranks of it."""
    equals = [0] * len(levels)
    for rank, level in enumerate(levels):
        equals[level] |= 1 << rank
    return equals
