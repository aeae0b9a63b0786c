"""Exact fewest GPUs that hold given slices."""

from collections.abc import Sequence
from typing import Protocol

from broker.domain.geometry.profiles import Profile
from broker.domain.placement.costs.state_tables import StateTable

EIGHT_UNIT_COMPUTE = 7  # a grid of eight units with compute for seven of them
# On such a grid, by size and first units: a profile's index in the counts. A 4g has one placement, left of a 3g.
SHAPE_CLASSES = {(1, (0, 1, 2, 3, 4, 5, 6)): 0, (2, (0, 2, 4, 6)): 1, (2, (0, 2, 4)): 2, (4, (0, 4)): 3, (4, (0,)): 4}


class CapacityTest(Protocol):
    """Counts of slices that can tell whether a number of GPUs holds them."""

    def add_slices(self, profile: Profile, count: int) -> None: ...
    def fits(self, gpus: int) -> bool: ...


def min_gpus(table: StateTable, counts: Sequence[int]) -> int:
    """Return the fewest GPUs that hold these counts of each profile."""
    kinds = {profile.isolation for profile in table.profiles}
    total = 0
    for kind in kinds:
        its = [(p, n) for p, n in zip(table.profiles, counts, strict=True) if p.isolation is kind]
        total += sum(n for p, n in its if p.memory == table.grid)
        if parts := [(p, n) for p, n in its if p.memory < table.grid]:
            holding = create_capacity_test([p for p, _ in parts], table.grid)
            for profile, count in parts:
                holding.add_slices(profile, count)
            total += _bisect_fewest(holding, sum(count for _, count in parts))
    return total


def _bisect_fewest(holding: CapacityTest, enough: int) -> int:
    """Return the fewest GPUs by bisection between none and one per slice."""
    low, high = 0, enough
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holding.fits(middle) else (middle + 1, high)
    return low


def create_capacity_test(profiles: Sequence[Profile], grid: int) -> CapacityTest:
    if _sizes_nest(profiles, grid):
        return NestedCapacity(grid)
    if grid == EIGHT_UNIT_COMPUTE + 1 and all(_placement_shape(profile) in SHAPE_CLASSES for profile in profiles):
        return EightUnitCapacity(profiles)
    names = ", ".join(profile.name for profile in profiles)
    raise ValueError(f"no closed form is known for the fewest GPUs of {grid} units that hold {names}")


def _placement_shape(profile: Profile) -> tuple[int, tuple[int, ...]]:
    return profile.memory, tuple(sorted(place.start for place in profile.placements))


def _sizes_nest(profiles: Sequence[Profile], grid: int) -> bool:
    """Tell whether every size divides the next and starts at its multiples."""
    sizes = sorted({profile.memory for profile in profiles})
    return all(more % size == 0 for size, more in zip(sizes, [*sizes[1:], grid], strict=True)) and all(
        _placement_shape(profile) == (profile.memory, tuple(range(0, grid, profile.memory))) for profile in profiles
    )


class NestedCapacity:
    """Slices whose sizes divide each other: largest first, they fill GPUs completely."""

    def __init__(self, grid: int) -> None:
        self._grid, self._taken = grid, 0

    def add_slices(self, profile: Profile, count: int) -> None:
        self._taken += count * profile.memory

    def fits(self, gpus: int) -> bool:
        return self._taken <= gpus * self._grid


class EightUnitCapacity:
    """Slices on a grid of eight units with compute for seven."""

    def __init__(self, profiles: Sequence[Profile]) -> None:
        self._class = {profile.name: SHAPE_CLASSES[_placement_shape(profile)] for profile in profiles}
        self._counts = [0] * len(SHAPE_CLASSES)

    def add_slices(self, profile: Profile, count: int) -> None:
        self._counts[self._class[profile.name]] += count

    def fits(self, gpus: int) -> bool:
        return fits_eight_unit_gpus(gpus, *self._counts)


def fits_eight_unit_gpus(gpus: int, ones: int, doubles: int, twos: int, threes: int, fours: int) -> bool:
    """Tell whether these GPUs hold 1g, double-memory 1g, 2g, 3g and 4g slices.

    Every GPU has a left half, two pairs of units, and a right half: a pair and then the last two units,
    of which the very last serves only a double-memory 1g or a 3g. So slices that can lie right do so,
    and the rest lies left.
    """
    if fours > gpus:
        return False
    right = min(threes, gpus)
    left_halves = gpus - fours - (threes - right)
    if left_halves < 0:
        return False
    tails = gpus - right
    pairs = 2 * left_halves + tails
    in_tails = min(doubles, tails)
    in_pairs = twos + doubles - in_tails
    return in_pairs <= pairs and ones <= 2 * (pairs - in_pairs) + tails - in_tails
