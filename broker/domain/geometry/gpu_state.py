"""Partitioning of one GPU: its slices, and the state that decides what fits."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from broker.domain.geometry.profiles import Placement, Profile
from broker.domain.lifecycle.states import Isolation


@dataclass(frozen=True, slots=True)
class GpuState:
    """All that placement needs to know of a GPU; equal states are interchangeable.

    Slices conflict if and only if their runs of memory units overlap, so a bit mask decides, with one
    more bit for the media engines and the isolation the GPU is partitioned for (None: empty, it may
    become anything). The number of slices only decides which of two equals is taken.
    """

    mask: int = 0
    media: bool = False
    compute: int = 0
    isolation: Isolation | None = None
    count: int = field(default=0, compare=False, repr=False)

    @property
    def empty(self) -> bool:
        return self.mask == 0

    def fits(self, profile: Profile, placement: Placement) -> bool:
        """Tell whether the profile fits at this placement beside the existing slices."""
        return (
            self.mask & placement.mask == 0
            and self.isolation in (None, profile.isolation)
            and not (self.media and profile.media)
        )

    def with_held(self, profile: Profile, placement: Placement) -> "GpuState":
        """Return the state after taking a placement; ValueError if it is not free."""
        if not self.fits(profile, placement):
            raise ValueError(f"{profile.name} does not fit at unit {placement.start} of a GPU in state {self}")
        return GpuState(
            mask=self.mask | placement.mask,
            media=self.media or profile.media,
            compute=self.compute + profile.compute,
            isolation=profile.isolation,
            count=self.count + 1,
        )

    def without(self, profile: Profile, placement: Placement) -> "GpuState":
        """Return the state after freeing a placement; ValueError if it was not held."""
        held = self.mask & placement.mask == placement.mask and self.isolation is profile.isolation
        if not held or self.compute < profile.compute or (profile.media and not self.media):
            raise ValueError(f"{profile.name} at unit {placement.start} is not held by a GPU in state {self}")
        mask = self.mask & ~placement.mask
        return GpuState(
            mask=mask,
            media=self.media and not profile.media,
            compute=self.compute - profile.compute,
            isolation=self.isolation if mask else None,
            count=self.count - 1 if mask else 0,
        )


EMPTY_GPU = GpuState()


@dataclass(frozen=True, slots=True, order=True)
class PlacedSlice:
    """One profile at one placement."""

    placement: Placement
    profile: Profile


@dataclass(frozen=True, slots=True)
class Geometry:
    """The slices of one GPU: a set of profiles at placements."""

    held: frozenset[PlacedSlice] = frozenset()

    @property
    def state(self) -> GpuState:
        return state_of(self.held)

    def fits(self, profile: Profile, placement: Placement) -> bool:
        """Tell whether the profile may be added, by units and by instance limit."""
        count = sum(1 for held in self.held if held.profile == profile)
        return count < profile.max_instances and self.state.fits(profile, placement)

    def with_held(self, profile: Profile, placement: Placement) -> "Geometry":
        if not self.fits(profile, placement):
            raise ValueError(f"{profile.name} does not fit at unit {placement.start} of {self}")
        return Geometry(self.held | {PlacedSlice(placement, profile)})

    def without(self, profile: Profile, placement: Placement) -> "Geometry":
        gone = PlacedSlice(placement, profile)
        if gone not in self.held:
            raise ValueError(f"{profile.name} at unit {placement.start} is not part of {self}")
        return Geometry(self.held - {gone})

    def __str__(self) -> str:
        return " ".join(f"{h.profile.name}@{h.placement.start}" for h in self._in_order()) or "an unpartitioned GPU"

    def _in_order(self) -> list[PlacedSlice]:
        return sorted(self.held, key=lambda held: held.placement)


def state_of(held: Iterable[PlacedSlice]) -> GpuState:
    """Return the state of a GPU with these slices; ValueError if two conflict."""
    state = EMPTY_GPU
    for each in held:
        state = state.with_held(each.profile, each.placement)
    return state
