"""Profiles: the shapes that are sold, with their placements on a GPU."""

from dataclasses import dataclass
from enum import StrEnum

from broker.domain.lifecycle.states import Isolation


class ProfileKind(StrEnum):
    """How a profile shares its GPU: not at all, by partition, or with neighbours."""

    WHOLE_GPU = "whole-gpu"
    SLICE = "slice"
    SHARE = "share"


KIND_OF = {
    Isolation.DEVICE: ProfileKind.WHOLE_GPU,
    Isolation.HARDWARE: ProfileKind.SLICE,
    Isolation.SOFT: ProfileKind.SHARE,
    Isolation.NONE: ProfileKind.SHARE,
}
WHOLE_GPU = "whole-gpu"  # the name of the profile
SHARES = {"half": 2, "quarter": 4}


@dataclass(frozen=True, slots=True, order=True)
class Placement:
    """A run of memory units on one GPU, `start` and `size` as in NVML."""

    start: int
    size: int

    @property
    def end(self) -> int:
        return self.start + self.size

    @property
    def mask(self) -> int:
        """The units as bits, unit 0 lowest."""
        return ((1 << self.size) - 1) << self.start

    def overlaps(self, other: "Placement") -> bool:
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Profile:
    """One shape of a GpuModel; all its placements have the size `memory`."""

    name: str
    compute: int  # compute slices of its own; a share has none
    memory: int  # units of the memory grid
    placements: tuple[Placement, ...]
    max_instances: int
    media: bool  # takes the GPU's media engines, which exist once
    isolation: Isolation

    def __hash__(self) -> int:
        """Hash only the fields that profiles of one model differ by, for speed."""
        return hash((self.name, self.isolation, self.memory))

    @property
    def kind(self) -> ProfileKind:
        return KIND_OF[self.isolation]

    def placed_at(self, start: int) -> Placement:
        """Return the placement that begins at a unit, or raise ValueError."""
        for placement in self.placements:
            if placement.start == start:
                return placement
        starts = ", ".join(str(p.start) for p in self.placements) or "nowhere"
        raise ValueError(f"{self.name} cannot start at unit {start}; it may start at {starts}")


def whole_gpu(*, grid: int, compute: int) -> Profile:
    """Return the profile of the whole GPU, not shared."""
    return Profile(
        name=WHOLE_GPU,
        compute=compute,
        memory=grid,
        placements=(Placement(0, grid),),
        max_instances=1,
        media=False,
        isolation=Isolation.DEVICE,
    )


def share_profiles(*, grid: int, isolation: Isolation) -> tuple[Profile, ...]:
    """Return the shares a GPU can be sold in: those that divide its grid."""
    if KIND_OF[isolation] is not ProfileKind.SHARE:
        raise ValueError(f"a GPU of isolation {isolation} is not sold in shares; use soft or none")
    return tuple(
        Profile(
            name=name,
            compute=0,
            memory=grid // parts,
            placements=tuple(Placement(start, grid // parts) for start in range(0, grid, grid // parts)),
            max_instances=parts,
            media=False,
            isolation=isolation,
        )
        for name, parts in SHARES.items()
        if grid % parts == 0
    )
