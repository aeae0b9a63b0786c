"""GPUs by the exact slices on them, and which slices to evict for a profile."""

from bisect import insort
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from broker.domain.geometry.profiles import Profile
from broker.domain.placement.costs.state_tables import EMPTY, StateTable


class SliceEviction(NamedTuple):
    """First units of slices whose removal makes room; the cheapest compares smallest."""

    slices: int
    compute: int
    free_units: int  # before the eviction: the fullest GPU comes first
    starts: tuple[int, ...]


class GpuShapes:
    """GPUs grouped by shape: equal profiles at equal places, equally relocatable.

    A shape is a number with one digit for every unit of the grid: what begins there. Few of the
    possible shapes ever occur, so results for a shape are cached when first requested.
    """

    def __init__(self, table: StateTable, gpus: int) -> None:
        self._table = table
        self._digit = (2 * len(table.profiles) + 1).bit_length()
        self.shape_of = [0] * gpus
        self.gpus: dict[int, dict[int, None]] = {0: dict.fromkeys(range(gpus))}
        self._evictions: dict[tuple[int, int], _EvictionCache] = {}
        # A whole GPU is never evicted: it would only take another one.
        self._worth_evicting = [
            [each.memory < table.grid and _helps_to_evict(each, wanted) for each in table.profiles]
            for wanted in table.profiles
        ]

    def copy(self) -> "GpuShapes":
        """Return a copy, with GPUs in the order of their numbers."""
        clone = GpuShapes(self._table, 0)
        clone.shape_of, clone._evictions = list(self.shape_of), {}
        clone.gpus = {}
        for gpu, shape in enumerate(self.shape_of):
            clone.gpus.setdefault(shape, {})[gpu] = None
        return clone

    def add_slice(self, gpu: int, profile: int, start: int, *, relocatable: bool) -> None:
        self._set_shape(gpu, self.shape_of[gpu] + self._shape_digit(profile, start, relocatable))

    def remove_slice(self, gpu: int, profile: int, start: int, *, relocatable: bool) -> None:
        self._set_shape(gpu, self.shape_of[gpu] - self._shape_digit(profile, start, relocatable))

    def cheapest_evictions(self, profile: int, max_slices: int) -> Iterator[tuple[SliceEviction, int]]:
        """Yield ways to make room by at most `max_slices` slices, cheapest first.

        Each comes with a GPU for which it is one.
        """
        cache = self._evictions.setdefault((profile, max_slices), _EvictionCache())
        for shape in self.gpus.keys() - cache.searched_shapes:
            cache.searched_shapes.add(shape)
            if eviction := self._cheapest_eviction(shape, profile, max_slices):
                insort(cache.sorted_evictions, (eviction, shape))
        for eviction, shape in cache.sorted_evictions:
            for gpu in reversed(self.gpus.get(shape, {})):
                yield eviction, gpu
                break

    def _cheapest_eviction(self, shape: int, profile: int, max_slices: int) -> SliceEviction | None:
        table = self._table
        state, relocatable = EMPTY, []
        for start in range(table.grid):
            digit = shape >> start * self._digit & (1 << self._digit) - 1
            if digit:
                number, is_relocatable = divmod(digit - 1, 2)
                state = table.state_with[number][start][state]
                if is_relocatable and self._worth_evicting[profile][number]:
                    relocatable.append((start, number))
        free_units, evictions = table.free_units(state), []
        for count in range(1, max_slices + 1):
            for evicted in combinations(relocatable, count):
                after = state
                for start, number in evicted:
                    after = table.state_without[number][start][after]
                if table.options[profile][after]:
                    compute = sum(table.profiles[number].compute for _, number in evicted)
                    evictions.append(SliceEviction(count, compute, free_units, tuple(start for start, _ in evicted)))
            if evictions:
                return min(evictions)
        return None

    def _shape_digit(self, profile: int, start: int, relocatable: bool) -> int:
        return (2 * profile + relocatable + 1) << start * self._digit

    def _set_shape(self, gpu: int, shape: int) -> None:
        before = self.gpus[self.shape_of[gpu]]
        del before[gpu]
        if not before:
            del self.gpus[self.shape_of[gpu]]
        self.shape_of[gpu] = shape
        self.gpus.setdefault(shape, {})[gpu] = None


def _helps_to_evict(evicted: Profile, wanted: Profile) -> bool:
    """Tell whether evicting one slice for the other can help.

    It cannot where the other would fit wherever the first could go.
    """
    differs_in_kind = (wanted.media and not evicted.media) or wanted.isolation is not evicted.isolation
    return differs_in_kind or not all(any(b.mask & ~a.mask == 0 for b in wanted.placements) for a in evicted.placements)


class _EvictionCache:
    def __init__(self) -> None:
        self.searched_shapes: set[int] = set()
        self.sorted_evictions: list[tuple[SliceEviction, int]] = []
