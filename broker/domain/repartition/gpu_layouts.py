"""GPU layouts: every way to partition a GPU, as counts of profiles.

A node is configured with them, and they say what it offers.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.gpu_state import EMPTY_GPU, Geometry, GpuState, PlacedSlice
from broker.domain.geometry.profiles import WHOLE_GPU, Placement, Profile
from broker.domain.lifecycle.states import Isolation


@dataclass(frozen=True, slots=True, order=True)
class GpuLayout:
    """The number of slices of each profile on one GPU.

    The driver decides where each of them lies.
    """

    counts: tuple[tuple[str, int], ...] = ()

    @classmethod
    def from_names(cls, names: Iterable[str]) -> "GpuLayout":
        return cls(tuple(sorted(Counter(names).items())))

    @classmethod
    def from_counts(cls, counts: Mapping[str, int]) -> "GpuLayout":
        return cls(tuple(sorted((name, count) for name, count in counts.items() if count)))

    @property
    def is_whole_gpu(self) -> bool:
        return self.counts == ((WHOLE_GPU, 1),)

    def __str__(self) -> str:
        return " + ".join(f"{count} × {name}" for name, count in self.counts) or "nothing"


WHOLE_GPU_LAYOUT = GpuLayout(((WHOLE_GPU, 1),))


class LayoutCatalogue:
    """All full layouts of a GPU, and the unpartitioned GPU.

    A layout is full if no further slice fits. `max_per_gpu` limits the profiles to those the node itself
    knows, with the most of each that one GPU can have; without it the model's own limits apply.
    """

    def __init__(self, model: GpuModelSpec, profiles: Iterable[Profile], max_per_gpu: Mapping[str, int] | None = None):
        self.model = model
        known = (profile for profile in profiles if profile.isolation is Isolation.HARDWARE)
        self.profiles = tuple(
            sorted(
                (p for p in known if max_per_gpu is None or max_per_gpu.get(p.name)), key=lambda p: (-p.memory, p.name)
            )
        )
        self._max_per_gpu = {
            p.name: min(p.max_instances, (max_per_gpu or {}).get(p.name, p.max_instances)) for p in self.profiles
        }

    @cached_property
    def layouts(self) -> tuple[GpuLayout, ...]:
        """All layouts of the catalogue, sorted."""
        return tuple(sorted(self._maximal))

    def geometry_of(self, layout: GpuLayout) -> Geometry:
        """Return a geometry for a layout, or raise ValueError if impossible."""
        if layout.is_whole_gpu:
            return Geometry(frozenset({PlacedSlice(self.model.whole.placements[0], self.model.whole)}))
        wanted = dict(layout.counts)
        unknown = sorted(set(wanted) - set(self._max_per_gpu))
        if unknown:
            raise ValueError(f"{self.model.name} here has no {', '.join(unknown)}; its profiles: {self.profile_names}")
        by_name = {profile.name: profile for profile in self.profiles}
        lies = next(
            self._arrangements([by_name[p.name] for p in self.profiles for _ in range(wanted.get(p.name, 0))]), None
        )
        if lies is None or any(count > self._max_per_gpu[name] for name, count in layout.counts):
            raise ValueError(f"{self.model.name} cannot be partitioned into {layout}")
        return Geometry(frozenset(lies))

    @property
    def profile_names(self) -> str:
        """The names of the profiles as a comma-separated text."""
        return ", ".join(profile.name for profile in self.profiles) or "no profiles"

    @property
    def _maximal(self) -> frozenset[GpuLayout]:
        return _full_layouts(self.model.grid, self.profiles, tuple(self._max_per_gpu[p.name] for p in self.profiles))

    def _arrangements(self, profiles: list[Profile], state: GpuState = EMPTY_GPU) -> Iterator[list[PlacedSlice]]:
        """Yield ways to place all the profiles, large ones first."""
        for placement in profiles[0].placements if profiles else ():
            if state.fits(profiles[0], placement):
                for others in self._arrangements(profiles[1:], state.with_held(profiles[0], placement)):
                    yield [PlacedSlice(placement, profiles[0]), *others]
        if not profiles:
            yield []


def _is_contained(layout: GpuLayout, other: GpuLayout) -> bool:
    """Tell whether another layout offers all that this one does, and more."""
    has = dict(other.counts)
    return layout != other and all(has.get(name, 0) >= count for name, count in layout.counts)


@lru_cache(maxsize=64)
def _full_layouts(grid: int, profiles: tuple[Profile, ...], max_per_gpu: tuple[int, ...]) -> frozenset[GpuLayout]:
    """Fill the GPU unit by unit in every way; keep only the full layouts."""
    layouts: set[GpuLayout] = set()
    visited: set[tuple[GpuState, int, GpuLayout]] = set()
    ways: list[tuple[GpuState, int, tuple[str, ...]]] = [(EMPTY_GPU, 0, ())]
    while ways:
        state, unit, names = ways.pop()
        key = (state, unit, GpuLayout.from_names(names))
        if key in visited:
            continue
        visited.add(key)
        if unit == grid:
            layouts.add(key[2])
            continue
        ways.append((state, unit + 1, names))
        for profile, limit in zip(profiles, max_per_gpu, strict=True):
            here = Placement(unit, profile.memory)
            full = names.count(profile.name) >= limit
            if here in profile.placements and state.fits(profile, here) and not full:
                ways.append((state.with_held(profile, here), here.end, (*names, profile.name)))
    slices = {layout for layout in layouts if layout.counts}
    return frozenset(
        {WHOLE_GPU_LAYOUT, *(layout for layout in slices if not any(_is_contained(layout, other) for other in slices))}
    )
