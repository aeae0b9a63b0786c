"""The fewest cards that could hold given slices, exactly: what any way of placing them is measured against."""

from collections.abc import Sequence
from typing import Protocol

from broker.domain.placement.tables import Table
from broker.domain.profiles import Profile

SHORT = 7  # a grid of eight units with compute for seven of them
# There: by size and first units, the place of a profile among the counts. A 4g has but one place, left of a 3g.
CLASSES = {
    (1, (0, 1, 2, 3, 4, 5, 6)): 0,
    (2, (0, 2, 4, 6)): 1,
    (2, (0, 2, 4)): 2,
    (4, (0, 4)): 3,
    (4, (0,)): 4,
}


class Holding(Protocol):
    """How many slices there are, in a form that tells whether so many cards could hold them."""

    def change(self, profile: Profile, by: int) -> None: ...
    def fits(self, cards: int) -> bool: ...


class Minimum:
    """The fewest cards that could hold all slices there are, kept up through every change in no time.

    Slices with media engines count as their plain twins, although a card has only one such.
    """

    def __init__(self, table: Table) -> None:
        """Begin with no slice; raises ValueError for profiles of which no closed form is known."""
        self._table = table
        self._whole = [profile.memory == table.grid for profile in table.profiles]
        # What a card is cut for it keeps until it is empty: each isolation needs cards of its own.
        parts = {
            kind: [p for p in table.profiles if p.isolation is kind and p.memory < table.grid]
            for kind in {p.isolation for p in table.profiles}
        }
        self._holding = {kind: _holding(its, table.grid) for kind, its in parts.items() if its}
        self._least = dict.fromkeys(self._holding, 0)
        self.cards = 0

    def add(self, profile: int) -> None:
        if self._whole[profile]:
            self.cards += 1
            return
        kind = self._table.profiles[profile].isolation
        holding = self._holding[kind]
        holding.change(self._table.profiles[profile], 1)
        # One slice more takes one card more at most, so one look is enough.
        if not holding.fits(self._least[kind]):
            self._least[kind] += 1
            self.cards += 1

    def remove(self, profile: int) -> None:
        if self._whole[profile]:
            self.cards -= 1
            return
        kind = self._table.profiles[profile].isolation
        holding = self._holding[kind]
        holding.change(self._table.profiles[profile], -1)
        if self._least[kind] and holding.fits(self._least[kind] - 1):
            self._least[kind] -= 1
            self.cards -= 1


def min_cards(table: Table, counts: Sequence[int]) -> int:
    """Return the fewest cards that hold so many slices of each profile."""
    kinds = {profile.isolation for profile in table.profiles}
    total = 0
    for kind in kinds:
        its = [(p, n) for p, n in zip(table.profiles, counts, strict=True) if p.isolation is kind]
        total += sum(n for p, n in its if p.memory == table.grid)
        if parts := [(p, n) for p, n in its if p.memory < table.grid]:
            holding = _holding([p for p, _ in parts], table.grid)
            for profile, count in parts:
                holding.change(profile, count)
            total += _fewest(holding, sum(count for _, count in parts))
    return total


def _fewest(holding: Holding, enough: int) -> int:
    """Halve the numbers of cards between none and one for each slice."""
    low, high = 0, enough
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holding.fits(middle) else (middle + 1, high)
    return low


def _holding(profiles: Sequence[Profile], grid: int) -> Holding:
    if _nests(profiles, grid):
        return Units(grid)
    if grid == SHORT + 1 and all(_shape(profile) in CLASSES for profile in profiles):
        return Halves(profiles)
    names = ", ".join(profile.name for profile in profiles)
    raise ValueError(f"no closed form is known for the fewest cards of {grid} units that hold {names}")


def _shape(profile: Profile) -> tuple[int, tuple[int, ...]]:
    return profile.memory, tuple(sorted(place.start for place in profile.placements))


def _nests(profiles: Sequence[Profile], grid: int) -> bool:
    """Tell whether every size divides the next and may begin at all its multiples."""
    sizes = sorted({profile.memory for profile in profiles})
    return all(more % size == 0 for size, more in zip(sizes, [*sizes[1:], grid], strict=True)) and all(
        _shape(profile) == (profile.memory, tuple(range(0, grid, profile.memory))) for profile in profiles
    )


class Units:
    """Slices whose sizes divide each other: largest first, they fill every card to the last unit."""

    def __init__(self, grid: int) -> None:
        self._grid, self._taken = grid, 0

    def change(self, profile: Profile, by: int) -> None:
        self._taken += by * profile.memory

    def fits(self, cards: int) -> bool:
        return self._taken <= cards * self._grid


class Halves:
    """Slices on a grid of eight units with compute for seven."""

    def __init__(self, profiles: Sequence[Profile]) -> None:
        self._class = {profile.name: CLASSES[_shape(profile)] for profile in profiles}
        self._counts = [0] * len(CLASSES)

    def change(self, profile: Profile, by: int) -> None:
        self._counts[self._class[profile.name]] += by

    def fits(self, cards: int) -> bool:
        return fits(cards, *self._counts)


def fits(cards: int, ones: int, doubles: int, twos: int, threes: int, fours: int) -> bool:
    """Tell whether so many cards hold 1g, 1g of double memory, 2g, 3g and 4g slices.

    Every card has a left half, a pair of pairs, and a right one: a pair and then the last two units, of which
    the very last serves only a 1g of double memory or a 3g. So whoever can lies right, and the rest left.
    """
    if fours > cards:
        return False
    right = min(threes, cards)
    left_halves = cards - fours - (threes - right)
    if left_halves < 0:
        return False
    tails = cards - right
    pairs = 2 * left_halves + tails
    in_tails = min(doubles, tails)
    in_pairs = twos + doubles - in_tails
    return in_pairs <= pairs and ones <= 2 * (pairs - in_pairs) + tails - in_tails
