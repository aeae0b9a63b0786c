"""Warm slices: slices left over on a GPU after their leases have ended.

They count as free. A request for the same slice at the same placement needs no partitioning; anything
else that overlaps one destroys it first. Only dynamically partitioned GPUs have any, and only where
ended slices are not destroyed.
"""

from collections.abc import Iterable
from enum import IntEnum

from broker.domain.geometry.gpu_state import PlacedSlice
from broker.domain.geometry.profiles import Placement, Profile
from broker.domain.lifecycle.states import Isolation

WarmSlices = frozenset[PlacedSlice]  # the leftover slices of a GPU
NO_WARM_SLICES = WarmSlices()


class PartitioningEffort(IntEnum):
    """The partitioning needed to provide a slice at a placement, quickest first."""

    REUSE = 0  # nothing: exactly this slice is left over there
    CREATE = 1  # it is created where nothing is
    REPLACE = 2  # leftover slices are destroyed first


def is_partition(profile: Profile) -> bool:
    """Tell whether a profile is a slice, which may be left over.

    A whole GPU and a share leave nothing.
    """
    return profile.isolation is Isolation.HARDWARE


def must_destroy(leftover: PlacedSlice, profile: Profile, placement: Placement) -> bool:
    """Tell whether a leftover slice must be destroyed before a profile is placed.

    It must if they overlap, or need the same media engines, or the GPU changes from slices to something
    else.
    """
    return (
        not is_partition(profile)
        or leftover.placement.overlaps(placement)
        or (leftover.profile.media and profile.media)
    )


def after_placing(warm: WarmSlices, profile: Profile, placement: Placement) -> WarmSlices:
    """Return the leftover slices after a profile was placed.

    The placed slice itself is in use, and no longer left over.
    """
    return frozenset(left for left in warm if not must_destroy(left, profile, placement))


def after_release(warm: WarmSlices, profile: Profile, placement: Placement) -> WarmSlices:
    """Return the leftover slices after a profile was released."""
    return warm | {PlacedSlice(placement, profile)} if is_partition(profile) else warm


def remaining_warm_slices(held: Iterable[PlacedSlice], ended: Iterable[PlacedSlice]) -> WarmSlices:
    """Return a GPU's leftover slices, from its held and its ended ones.

    `ended` is latest first. An ended slice still exists when nothing later took its room.
    """
    later, found = list(held), set[PlacedSlice]()
    if not all(is_partition(each.profile) for each in later):
        return NO_WARM_SLICES
    for each in ended:
        if not is_partition(each.profile):
            break  # the GPU was not partitioned then: nothing earlier remains
        if not any(must_destroy(each, other.profile, other.placement) for other in later):
            found.add(each)
        later.append(each)
    return frozenset(found)


def partitioning_effort(warm: WarmSlices, profile: Profile, placement: Placement) -> PartitioningEffort:
    """Return the partitioning needed for a profile at a free placement."""
    if PlacedSlice(placement, profile) in warm:
        return PartitioningEffort.REUSE
    return (
        PartitioningEffort.REPLACE
        if any(must_destroy(left, profile, placement) for left in warm)
        else PartitioningEffort.CREATE
    )
