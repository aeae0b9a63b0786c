"""Cards by exactly which slices lie on them, and which of those would have to go to make room for a profile."""

from bisect import insort
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from broker.domain.placement.tables import EMPTY, Table
from broker.domain.profiles import Profile


class Eviction(NamedTuple):
    """First units of the slices that make room by going; the cheapest way has the smallest tuple."""

    slices: int
    compute: int
    units_left: int  # of the card as it is: the fullest card is asked first
    starts: tuple[int, ...]


class Shapes:
    """Cards in buckets of equal shape: the same profiles at the same places, and the same ones of them movable.

    A shape is a number with one digit for every unit of the grid: what begins there. Few of the shapes that are
    possible are ever seen, so what is worked out about one is remembered when it is first asked for.
    """

    def __init__(self, table: Table, cards: int) -> None:
        self._table = table
        self._digit = (2 * len(table.profiles) + 1).bit_length()
        self.of = [0] * cards
        self.cards: dict[int, dict[int, None]] = {0: dict.fromkeys(range(cards))}
        self._ways: dict[tuple[int, int], _Ways] = {}
        # A whole card makes way for nobody: it would only take another one.
        self._yields = [
            [its.memory < table.grid and _yields(its, wanted) for its in table.profiles]
            for wanted in table.profiles
        ]

    def copy(self) -> "Shapes":
        """Return the same cards in the same shapes, in the order of their numbers."""
        twin = Shapes(self._table, 0)
        twin.of, twin._ways = list(self.of), {}
        twin.cards = {}
        for card, shape in enumerate(self.of):
            twin.cards.setdefault(shape, {})[card] = None
        return twin

    def put(self, card: int, profile: int, start: int, *, movable: bool) -> None:
        self._become(card, self.of[card] + self._part(profile, start, movable))

    def take(self, card: int, profile: int, start: int, *, movable: bool) -> None:
        self._become(card, self.of[card] - self._part(profile, start, movable))

    def evictions(self, profile: int, most: int) -> Iterator[tuple[Eviction, int]]:
        """Name, cheapest first, ways to make room by at most so many slices, each with a card for which it is one."""
        ways = self._ways.setdefault((profile, most), _Ways())
        for shape in self.cards.keys() - ways.known:
            ways.known.add(shape)
            if way := self._cheapest(shape, profile, most):
                insort(ways.found, (way, shape))
        for way, shape in ways.found:
            for card in reversed(self.cards.get(shape, {})):
                yield way, card
                break

    def _cheapest(self, shape: int, profile: int, most: int) -> Eviction | None:
        table = self._table
        state, movable = EMPTY, []
        for start in range(table.grid):
            digit = shape >> start * self._digit & (1 << self._digit) - 1
            if digit:
                its, may_move = divmod(digit - 1, 2)
                state = table.put[its][start][state]
                if may_move and self._yields[profile][its]:
                    movable.append((start, its))
        left, ways = table.free(state), []
        for count in range(1, most + 1):
            for gone in combinations(movable, count):
                after = state
                for start, its in gone:
                    after = table.gone[its][start][after]
                if table.moves[profile][after]:
                    compute = sum(table.profiles[its].compute for _, its in gone)
                    ways.append(Eviction(count, compute, left, tuple(start for start, _ in gone)))
            if ways:
                return min(ways)
        return None

    def _part(self, profile: int, start: int, movable: bool) -> int:
        return (2 * profile + movable + 1) << start * self._digit

    def _become(self, card: int, shape: int) -> None:
        before = self.cards[self.of[card]]
        del before[card]
        if not before:
            del self.cards[self.of[card]]
        self.of[card] = shape
        self.cards.setdefault(shape, {})[card] = None


def _yields(its: Profile, wanted: Profile) -> bool:
    """Tell whether moving one for the other can help: not where the other would fit wherever the one could go."""
    other = (wanted.media and not its.media) or wanted.isolation is not its.isolation
    return other or not all(any(b.mask & ~a.mask == 0 for b in wanted.placements) for a in its.placements)


class _Ways:
    def __init__(self) -> None:
        self.known: set[int] = set()
        self.found: list[tuple[Eviction, int]] = []
