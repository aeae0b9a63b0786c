"""A pool that stores each GPU as its set of slices."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.profiles import Profile, share_profiles
from broker.domain.lifecycle.states import Isolation

Slice = tuple[int, int]  # profile, first unit


def all_profiles(model: GpuModelSpec) -> tuple[Profile, ...]:
    """Return all profiles as which a GPU of a model may be sold."""
    soft, none = (share_profiles(grid=model.grid, isolation=kind) for kind in (Isolation.SOFT, Isolation.NONE))
    return (*(p for p in model.profiles if p.placements), model.whole, *soft, *none)


@dataclass
class NaiveGpu:
    """One GPU by the slices on it."""

    profiles: tuple[Profile, ...]
    on: set[Slice] = field(default_factory=set)

    def units(self) -> set[int]:
        return {unit for p, start in self.on for unit in range(start, start + self.profiles[p].memory)}

    def fits(self, profile: int, start: int) -> bool:
        wanted = self.profiles[profile]
        here = [self.profiles[p] for p, _ in self.on]
        return (
            self.units().isdisjoint(range(start, start + wanted.memory))
            and all(each.isolation is wanted.isolation for each in here)
            and not (wanted.media and any(each.media for each in here))
        )

    def seats(self, profile: int) -> list[int]:
        return [p.start for p in self.profiles[profile].placements if self.fits(profile, p.start)]

    def key(self) -> tuple[frozenset[int], bool, Isolation | None]:
        """Return everything that determines which slices still fit."""
        here = [self.profiles[p] for p, _ in self.on]
        return frozenset(self.units()), any(p.media for p in here), here[0].isolation if here else None


def all_layouts(profiles: tuple[Profile, ...]) -> Iterator[frozenset[Slice]]:
    """Yield all sets of slices that fit on one GPU."""
    seen, todo = {frozenset[Slice]()}, [frozenset[Slice]()]
    while todo:
        gpu = NaiveGpu(profiles, set(todo.pop()))
        yield frozenset(gpu.on)
        for profile in range(len(profiles)):
            for start in gpu.seats(profile):
                if (more := frozenset({*gpu.on, (profile, start)})) not in seen:
                    seen.add(more)
                    todo.append(more)
