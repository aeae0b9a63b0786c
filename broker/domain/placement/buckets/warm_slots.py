"""Numbered slots of one table, so that leftover slices become a bit mask."""

from broker.domain.geometry.gpu_state import PlacedSlice
from broker.domain.placement.costs.state_ranks import StateRanks
from broker.domain.placement.warm_slices import (
    NO_WARM_SLICES,
    PartitioningEffort,
    WarmSlices,
    is_partition,
    must_destroy,
)


class WarmSlots:
    """The slices that may be left over, and which survive each placement."""

    def __init__(self, ranks: StateRanks) -> None:
        self._ranks, profiles = ranks, ranks.table.profiles
        held = (
            PlacedSlice(place, profile) for profile in profiles if is_partition(profile) for place in profile.placements
        )
        self._bit_of = {each: 1 << n for n, each in enumerate(held)}
        # By profile and first unit: the slice's own bit, and the bits of leftover slices that survive beside it.
        self.slot_bit = tuple(
            {place.start: self._bit_of.get(PlacedSlice(place, profile), 0) for place in profile.placements}
            for profile in profiles
        )
        self.surviving_bits = tuple(
            {
                place.start: sum(bit for left, bit in self._bit_of.items() if not must_destroy(left, profile, place))
                for place in profile.placements
            }
            for profile in profiles
        )
        self._known: dict[WarmSlices, int] = {NO_WARM_SLICES: 0}

    def to_bits(self, warm: WarmSlices) -> int:
        """Return leftover slices as bits; KeyError for impossible ones."""
        known = self._known.get(warm)
        if known is None:
            known = self._known[warm] = sum(self._bit_of[each] for each in warm)
        return known

    def quickest_start(self, profile: int, state: int, leftovers: int) -> tuple[PartitioningEffort, int]:
        """Return how and where a profile is available in a state where it fits.

        Of the starts that cost least it is the quickest, and of such the first.
        """
        bit, keeps = self.slot_bit[profile], self.surviving_bits[profile]
        return min(
            (
                PartitioningEffort.REUSE
                if leftovers & bit[start]
                else PartitioningEffort.REPLACE
                if leftovers & ~keeps[start]
                else PartitioningEffort.CREATE,
                start,
            )
            for start, _ in self._ranks.equal_options[profile][state]
        )
