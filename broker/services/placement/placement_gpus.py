"""A GPU as placement knows it: identity, location and occupied slices."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME, device_name
from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.gpu_state import EMPTY_GPU, Geometry, GpuState, PlacedSlice, state_of
from broker.domain.geometry.profiles import Placement, Profile, ProfileKind
from broker.domain.geometry.published_profiles import Partitioning, PublishedProfiles, parse_published_profiles
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.pool import GpuView
from broker.domain.placement.slots import Slot
from broker.domain.placement.warm_slices import (
    NO_WARM_SLICES,
    PartitioningEffort,
    WarmSlices,
    partitioning_effort,
    remaining_warm_slices,
)
from broker.services.inventory.gpu_catalogue import gpu_model_spec, profile_named

# A pool is the GPUs that may serve the same requests: one GpuModel in one region.
PoolKey = tuple[str, str]
STILL_PARTITIONED = " (reused an existing slice)"
ALL_UNITS = (1 << 64) - 1
OccupiedSlots = tuple[tuple[str, Placement, bool], ...]  # profile, placement, whether it is the asker's own


@dataclass(frozen=True, slots=True)
class PromisedSlice:
    """A slice that a waiting lease gets once the spot leases on it have ended."""

    lease_id: str
    placed: PlacedSlice


@dataclass(frozen=True, slots=True)
class PlacementGpu:
    """One GPU with its occupied slices.

    Owners are not included, except in `held` of a preview.
    """

    gpu: str
    node: str
    node_name: str
    cluster_id: str
    cluster: str
    index: int
    shares_soft: bool
    model: str
    region: str
    sellable: bool  # something new may be placed on it
    auto_repartition: bool
    layout: Geometry | None
    uncut: frozenset[Isolation]  # isolations it is sold with when it has no fixed layout
    fabric: str = ""  # as its node reports them
    numa: str = ""
    state: GpuState = EMPTY_GPU
    placement_count: int = 0  # number of placements on it
    held: OccupiedSlots = ()
    publishes: PublishedProfiles | None = None  # the published profiles, if fewer than its model supports
    warm: WarmSlices | None = None  # slices left partitioned on it; None: its driver leaves none
    promised: tuple[PromisedSlice, ...] = ()  # taken in `state`, for all but the leases that get them
    occupied: tuple[PlacedSlice, ...] = ()  # slices on it, where any is promised

    @property
    def pool(self) -> PoolKey:
        return self.model, self.region

    @property
    def view(self) -> GpuView:
        return GpuView(self.gpu, self.node, self.state, self.cut, self.warm)

    @property
    def cut(self) -> Partitioning:
        """Return its fixed partitioning, or the profiles it publishes."""
        return self.layout or self.publishes

    @property
    def picked_by_node(self) -> bool:
        """Return whether its node may serve a share from another GPU of the node."""
        return self.layout is not None and is_shared_layout(self.layout)

    @property
    def wiring(self) -> tuple[str, int, str, str]:
        """Return the fields that its links to other GPUs depend on."""
        return self.node, self.index, self.fabric, self.numa

    @property
    def location(self) -> str:
        return f"{self.cluster} / {self.node_name} / {device_name(self.model, self.index)}"

    def open_to(self, lease_id: str) -> "PlacementGpu":
        """Return the GPU as a lease sees it that slices of it are promised to."""
        others = tuple(each for each in self.promised if each.lease_id != lease_id)
        return replace(self, state=state_with_promises(self.occupied, others))

    def promises_to(self, lease_id: str) -> list[PlacedSlice]:
        """Return the slices of it that are promised to a lease."""
        return [each.placed for each in self.promised if each.lease_id == lease_id]

    def without_slices(self, gone: Collection[PlacedSlice]) -> "PlacementGpu":
        """Return the GPU once some slices are released; ValueError if it does not hold them."""
        count = max(self.placement_count - len(gone), 0)
        if self.promised:
            left = tuple(each for each in self.occupied if each not in gone)
            return replace(self, state=state_with_promises(left, self.promised), occupied=left, placement_count=count)
        state = self.state
        for each in gone:
            state = state.without(each.profile, each.placement)
        return replace(self, state=state, placement_count=count)

    def sold_as(self, isolation: Isolation) -> bool:
        """Return whether it can be sold with this isolation at all, when empty."""
        return self.layout is not None or isolation in self.uncut


def describe_placement(slots: Sequence[Slot], gpus: Mapping[str, PlacementGpu], profile: Profile) -> str:
    """Return a sentence on the placement, noting slices that are still partitioned."""
    where = ", ".join(sorted({gpu.location for gpu in gpus.values()}))
    warm = not any(gpu.model == CPU_MODEL_NAME for gpu in gpus.values()) and all(
        partitioning_effort(gpus[slot.gpu].warm or NO_WARM_SLICES, profile, slot.placement) is PartitioningEffort.REUSE
        for slot in slots
    )
    return f"placed on {where}" + (STILL_PARTITIONED if warm else "")


@lru_cache(maxsize=4096)
def is_shared_layout(layout: Geometry) -> bool:
    return any(held.profile.kind is ProfileKind.SHARE for held in layout.held)


@lru_cache(maxsize=4096)
def parse_layout(model: str, layout: str) -> Geometry:
    """Parse a fixed layout once: a fleet has few, and placement reads every GPU."""
    return geometry_from_layout(gpu_model_spec(model), json.loads(layout))


parse_published = lru_cache(maxsize=4096)(parse_published_profiles)  # similar nodes publish the same


def geometry_from_layout(spec: GpuModelSpec, layout: Iterable[dict[str, object]]) -> Geometry:
    """Convert a GPU's stored layout to a geometry.

    Raises ValueError for a slice the model does not have.
    """
    held = []
    for cut in layout:
        if cut.get("in_use"):  # by a pod outside the broker
            continue
        profile = spec.profile(str(cut["profile"]), Isolation(str(cut.get("isolation", Isolation.HARDWARE))))
        held.append(PlacedSlice(profile.placed_at(int(str(cut["start"]))), profile))
    return Geometry(frozenset(held))


@lru_cache(maxsize=65536)
def parse_state(model: str, lies: str) -> GpuState:
    """Parse occupied slices such as `hardware:1g.10gb@0 …`.

    Raises ValueError where they cannot lie so.
    """
    return state_of(parse_slices(model, lies))


def parse_promises(model: str, slots: str) -> tuple[PromisedSlice, ...]:
    """Parse promised slots such as `lse_…/hardware:1g.10gb@0 …`."""
    pairs = (slot.split("/", 1) for slot in slots.split())
    return tuple(PromisedSlice(lease_id, _parse_slice(model, placed)) for lease_id, placed in pairs)


def state_with_promises(occupied: Iterable[PlacedSlice], promised: Iterable[PromisedSlice]) -> GpuState:
    """Return the state of a GPU whose promised slices are taken as well.

    Of slices that overlap the largest counts, because the units of one lie within those of another. Nothing fits
    beside slices of two isolations: the GPU changes from one to the other when its leases end.
    """
    taken = sorted({*occupied, *(each.placed for each in promised)}, key=lambda each: -each.placement.size)
    if len({each.profile.isolation for each in taken}) > 1:
        return GpuState(mask=ALL_UNITS)
    state = EMPTY_GPU
    for each in taken:
        if state.fits(each.profile, each.placement):
            state = state.with_held(each.profile, each.placement)
        else:  # within a larger one, or the second with media engines
            state = replace(state, mask=state.mask | each.placement.mask)
    return state


def parse_warm_slices(model: str, lies: str, ended: str) -> WarmSlices:
    """Return the slices still partitioned on a GPU, from current and ended placements.

    `ended` is ordered latest first; what comes after a profile that the model no longer has is ignored.
    """
    return remaining_warm_slices(parse_slices(model, lies), _readable_slices(model, ended))


def _readable_slices(model: str, places: str) -> Iterator[PlacedSlice]:
    with suppress(ValueError, KeyError):
        for place in places.split():
            yield _parse_slice(model, place)


def parse_slices(model: str, places: str) -> list[PlacedSlice]:
    """Parse placements; raise ValueError or KeyError if the model does not have one."""
    return [_parse_slice(model, place) for place in places.split()]


@lru_cache(maxsize=4096)
def _parse_slice(model: str, place: str) -> PlacedSlice:
    isolation, _, rest = place.partition(":")
    name, _, start = rest.rpartition("@")
    profile = profile_named(model, name, isolation)
    return PlacedSlice(profile.placed_at(int(start)), profile)
