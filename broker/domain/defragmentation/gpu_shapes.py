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
    units_left: int  # free units before the eviction: the fullest GPU comes first
    starts: tuple[int, ...]


class GpuShapes:
    """GPUs grouped by shape: equal profiles at equal places, equally relocatable.

    A shape is a number with one digit for every unit of the grid: what begins there. Few of the
    possible shapes ever occur, so results for a shape are cached when first requested.
    """

    def __init__(self, table: StateTable, gpus: int) -> None:
        self._table = table
        self._digit = (2 * len(table.profiles) + 1).bit_length()
        self.of = [0] * gpus
        self.gpus: dict[int, dict[int, None]] = {0: dict.fromkeys(range(gpus))}
        self._ways: dict[tuple[int, int], _EvictionCache] = {}
        # A whole GPU is never evicted: it would only take another one.
        self._yields = [
            [its.memory < table.grid and _helps_to_move(its, wanted) for its in table.profiles]
            for wanted in table.profiles
        ]

    def copy(self) -> "GpuShapes":
        """Return a copy, with GPUs in the order of their numbers."""
        clone = GpuShapes(self._table, 0)
        clone.of, clone._ways = list(self.of), {}
        clone.gpus = {}
        for gpu, shape in enumerate(self.of):
            clone.gpus.setdefault(shape, {})[gpu] = None
        return clone

    def put(self, gpu: int, profile: int, start: int, *, relocatable: bool) -> None:
        self._become(gpu, self.of[gpu] + self._part(profile, start, relocatable))

    def take(self, gpu: int, profile: int, start: int, *, relocatable: bool) -> None:
        self._become(gpu, self.of[gpu] - self._part(profile, start, relocatable))

    def evictions(self, profile: int, most: int) -> Iterator[tuple[SliceEviction, int]]:
        """Yield ways to make room by at most `most` slices, cheapest first.

        Each comes with a GPU for which it is one.
        """
        ways = self._ways.setdefault((profile, most), _EvictionCache())
        for shape in self.gpus.keys() - ways.known:
            ways.known.add(shape)
            if eviction := self._cheapest(shape, profile, most):
                insort(ways.found, (eviction, shape))
        for eviction, shape in ways.found:
            for gpu in reversed(self.gpus.get(shape, {})):
                yield eviction, gpu
                break

    def _cheapest(self, shape: int, profile: int, most: int) -> SliceEviction | None:
        table = self._table
        state, relocatable = EMPTY, []
        for start in range(table.grid):
            digit = shape >> start * self._digit & (1 << self._digit) - 1
            if digit:
                its, may_move = divmod(digit - 1, 2)
                state = table.put[its][start][state]
                if may_move and self._yields[profile][its]:
                    relocatable.append((start, its))
        left, ways = table.free(state), []
        for count in range(1, most + 1):
            for gone in combinations(relocatable, count):
                after = state
                for start, its in gone:
                    after = table.gone[its][start][after]
                if table.moves[profile][after]:
                    compute = sum(table.profiles[its].compute for _, its in gone)
                    ways.append(SliceEviction(count, compute, left, tuple(start for start, _ in gone)))
            if ways:
                return min(ways)
        return None

    def _part(self, profile: int, start: int, relocatable: bool) -> int:
        return (2 * profile + relocatable + 1) << start * self._digit

    def _become(self, gpu: int, shape: int) -> None:
        before = self.gpus[self.of[gpu]]
        del before[gpu]
        if not before:
            del self.gpus[self.of[gpu]]
        self.of[gpu] = shape
        self.gpus.setdefault(shape, {})[gpu] = None


def _helps_to_move(its: Profile, wanted: Profile) -> bool:
    """Tell whether moving one slice for the other can help.

    It cannot where the other would fit wherever the first could go.
    """
    other = (wanted.media and not its.media) or wanted.isolation is not its.isolation
    return other or not all(any(b.mask & ~a.mask == 0 for b in wanted.placements) for a in its.placements)


class _EvictionCache:
    def __init__(self) -> None:
        self.known: set[int] = set()
        self.found: list[tuple[SliceEviction, int]] = []
