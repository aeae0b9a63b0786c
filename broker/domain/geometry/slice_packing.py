"""Exact best use of the free units of a GPU, for every state."""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from broker.domain.geometry.gpu_state import Geometry, GpuState, PlacedSlice
from broker.domain.geometry.profiles import Profile
from broker.domain.geometry.published_profiles import Partitioning, available_placements
from broker.domain.lifecycle.states import Isolation

ProfileWorth = Callable[[Profile], int]


class SlicePacking:
    """The greatest total worth of slices that still fit on a GPU."""

    def __init__(self, slots: Iterable[PlacedSlice], *, grid: int, worth: ProfileWorth) -> None:
        self._grid = grid
        self._worth = worth
        self._starting_at: dict[int, list[PlacedSlice]] = {unit: [] for unit in range(grid)}
        for slot in slots:
            self._starting_at[slot.placement.start].append(slot)
        self._best: dict[tuple[int, bool], int] = {}

    def best(self, mask: int, media: bool) -> int:
        """Return that worth for given units and media engines taken."""
        known = self._best.get((mask, media))
        if known is None:
            known = self._best[mask, media] = self._search(mask, media)
        return known

    def _search(self, mask: int, media: bool) -> int:
        free = ~mask & ((1 << self._grid) - 1)
        if not free:
            return 0
        lowest = free & -free
        # The lowest free unit either stays empty or is the start of a slice.
        filled = (self._with(slot, mask, media) for slot in self._slots_at(lowest, mask, media))
        return max(self.best(mask | lowest, media), *filled, 0)

    def _slots_at(self, unit: int, mask: int, media: bool) -> Iterator[PlacedSlice]:
        """Yield the slices that begin at a unit and still fit."""
        for slot in self._starting_at[unit.bit_length() - 1]:
            if not (slot.placement.mask & mask or (media and slot.profile.media)):
                yield slot

    def _with(self, slot: PlacedSlice, mask: int, media: bool) -> int:
        """Return the worth of a slice and of the best use after it."""
        return self._worth(slot.profile) + self.best(mask | slot.placement.mask, media or slot.profile.media)

    def unused_units(self, mask: int, media: bool) -> int:
        """Return the units that the best packing leaves empty, as bits."""
        left = 0
        while free := ~mask & ((1 << self._grid) - 1):
            lowest = free & -free
            best = self.best(mask, media)
            if self.best(mask | lowest, media) < best:
                fitting = self._slots_at(lowest, mask, media)
                slot = next(slot for slot in fitting if self._with(slot, mask, media) == best)
                mask, media = mask | slot.placement.mask, media or slot.profile.media
            else:
                left, mask = left | lowest, mask | lowest
        return left


def all_placements(profiles: Iterable[Profile]) -> tuple[PlacedSlice, ...]:
    """Return every placement of every profile."""
    return tuple(PlacedSlice(placement, profile) for profile in profiles for placement in profile.placements)


def fragmented_units(state: GpuState, offered: tuple[Profile, ...], *, grid: int) -> int:
    """Return how many free units of a GPU cannot be sold as any profile.

    That is the free units less the most units that offered profiles can fill together, beside what is
    held: the eighth unit beside seven 1g slices, or everything beside a slice where only whole GPUs are
    sold.
    """
    return sellable_profiles(offered, grid).unsellable_units(state).bit_count()


def fragmented_mask(state: GpuState, offered: tuple[Profile, ...], *, grid: int, layout: Geometry | None = None) -> int:
    """Return those units as bits.

    A layout fixes the GPU's partitioning, so only its own free slices can be sold.
    """
    free = ~state.mask & ((1 << grid) - 1)
    if layout is not None:
        sellable = 0
        for held in layout.held:
            if held.profile in offered and state.fits(held.profile, held.placement):
                sellable |= held.placement.mask
        return free & ~sellable
    kinds = {state.isolation} if state.isolation else {profile.isolation for profile in offered}
    left = [_memory_packing(offered, kind, grid).unused_units(state.mask, state.media) for kind in sorted(kinds)]
    return min(left, key=int.bit_count, default=free)


class SellableProfiles:
    """What is sold on GPUs of one kind, with unsellable units cached per state."""

    def __init__(self, offered: tuple[Profile, ...], grid: int, layout: Geometry | None) -> None:
        self.offered, self.grid, self.layout = offered, grid, layout
        self._lost: dict[tuple[int, bool, Isolation | None], int] = {}

    def unsellable_units(self, state: GpuState) -> int:
        """Return, as bits, the free units that cannot be sold."""
        key = state.mask, state.media, state.isolation
        known = self._lost.get(key)
        if known is None:
            known = fragmented_mask(state, self.offered, grid=self.grid, layout=self.layout)
            self._lost[key] = known
        return known


@lru_cache(maxsize=256)
def sellable_profiles(offered: tuple[Profile, ...], grid: int, layout: Geometry | None = None) -> SellableProfiles:
    """Return the shared instance for these arguments, so that its cache is shared."""
    return SellableProfiles(offered, grid, layout)


@lru_cache(maxsize=256)
def _memory_packing(offered: tuple[Profile, ...], isolation: Isolation, grid: int) -> SlicePacking:
    fitting = (profile for profile in offered if profile.isolation is isolation)
    return SlicePacking(all_placements(fitting), grid=grid, worth=lambda profile: profile.memory)


def max_instances_that_fit(profile: Profile, state: GpuState, cut: Partitioning) -> int:
    """Return exactly how many of one profile a GPU in this state can take."""
    if state.isolation not in (None, profile.isolation) or (profile.media and state.media):
        return 0
    count, free_from = 0, 0
    # Earliest end first: the exact greedy solution of interval scheduling.
    for placement in sorted(available_placements(profile, cut), key=lambda each: each.end):
        if placement.start >= free_from and not placement.mask & state.mask:
            count, free_from = count + 1, placement.end
    return min(count, 1) if profile.media else count
