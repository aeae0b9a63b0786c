"""The shape of what is sold: where on a card it may lie and how much of the card it takes."""

from dataclasses import dataclass
from enum import StrEnum

from broker.domain.states import Isolation


class ProfileKind(StrEnum):
    """How a profile shares its card: not at all, by partition, or with neighbours."""

    CARD = "card"
    SLICE = "slice"
    SHARE = "share"


KIND_OF = {
    Isolation.DEVICE: ProfileKind.CARD,
    Isolation.HARDWARE: ProfileKind.SLICE,
    Isolation.SOFT: ProfileKind.SHARE,
    Isolation.NONE: ProfileKind.SHARE,
}
SHARES = {"half": 2, "quarter": 4}


@dataclass(frozen=True, slots=True, order=True)
class Placement:
    """A run of memory units on one card, `start` and `size` as NVML counts them."""

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
    media: bool  # takes the card's media engines, which exist once
    isolation: Isolation

    def __hash__(self) -> int:
        """Hash the names alone: what profiles of one model differ by, and a fraction of the work."""
        return hash((self.name, self.isolation, self.memory))

    @property
    def kind(self) -> ProfileKind:
        return KIND_OF[self.isolation]

    def placed_at(self, start: int) -> Placement:
        """Return the placement that begins at a unit, or raise ValueError when there is none."""
        for placement in self.placements:
            if placement.start == start:
                return placement
        starts = ", ".join(str(p.start) for p in self.placements) or "nowhere"
        raise ValueError(f"{self.name} cannot start at unit {start}; it may start at {starts}")


def whole_card(*, grid: int, compute: int) -> Profile:
    """Return the profile that covers the card and shares it with nobody."""
    return Profile(
        name="card",
        compute=compute,
        memory=grid,
        placements=(Placement(0, grid),),
        max_instances=1,
        media=False,
        isolation=Isolation.DEVICE,
    )


def shares(*, grid: int, isolation: Isolation) -> tuple[Profile, ...]:
    """Return the shares a card can be sold in side by side: those that divide its grid."""
    if KIND_OF[isolation] is not ProfileKind.SHARE:
        raise ValueError(f"a card of isolation {isolation} is not sold in shares; use soft or none")
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
