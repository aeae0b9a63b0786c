"""The best use of the free units of a card, exactly, for every state that is asked for."""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from broker.domain.geometry import CardState, Geometry, Held
from broker.domain.profiles import Profile
from broker.domain.published import Cut, placements_of
from broker.domain.states import Isolation

Worth = Callable[[Profile], int]


class Packing:
    """The greatest total worth of slices that still fit beside what a card holds."""

    def __init__(self, seats: Iterable[Held], *, grid: int, worth: Worth) -> None:
        self._grid = grid
        self._worth = worth
        self._starting_at: dict[int, list[Held]] = {unit: [] for unit in range(grid)}
        for seat in seats:
            self._starting_at[seat.placement.start].append(seat)
        self._best: dict[tuple[int, bool], int] = {}

    def best(self, mask: int, media: bool) -> int:
        """Return that worth for the units taken and whether the media engines are."""
        known = self._best.get((mask, media))
        if known is None:
            known = self._best[mask, media] = self._search(mask, media)
        return known

    def _search(self, mask: int, media: bool) -> int:
        free = ~mask & ((1 << self._grid) - 1)
        if not free:
            return 0
        lowest = free & -free
        # The lowest free unit is either left empty for good or the start of a slice: there is no third way.
        filled = (self._with(seat, mask, media) for seat in self._seats_at(lowest, mask, media))
        return max(self.best(mask | lowest, media), *filled, 0)

    def _seats_at(self, unit: int, mask: int, media: bool) -> Iterator[Held]:
        """Name the seats that begin at a unit and still fit."""
        for seat in self._starting_at[unit.bit_length() - 1]:
            if not (seat.placement.mask & mask or (media and seat.profile.media)):
                yield seat

    def _with(self, seat: Held, mask: int, media: bool) -> int:
        """Return the worth of taking a seat and the best of what is left then."""
        return self._worth(seat.profile) + self.best(mask | seat.placement.mask, media or seat.profile.media)

    def left(self, mask: int, media: bool) -> int:
        """Return the units that the best packing leaves empty, as bits."""
        left = 0
        while free := ~mask & ((1 << self._grid) - 1):
            lowest = free & -free
            best = self.best(mask, media)
            if self.best(mask | lowest, media) < best:
                fitting = self._seats_at(lowest, mask, media)
                seat = next(seat for seat in fitting if self._with(seat, mask, media) == best)
                mask, media = mask | seat.placement.mask, media or seat.profile.media
            else:
                left, mask = left | lowest, mask | lowest
        return left


def seats_of(profiles: Iterable[Profile]) -> tuple[Held, ...]:
    """Return every placement of every profile."""
    return tuple(Held(placement, profile) for profile in profiles for placement in profile.placements)


def fragmented_units(state: CardState, offered: tuple[Profile, ...], *, grid: int) -> int:
    """Return how many free units of a card nothing that is offered can be sold on.

    That is the free units less the most units that offered profiles can fill together, beside what is
    held: the eighth unit beside seven 1g slices, or everything beside a slice where only whole cards sell.
    """
    return wares(offered, grid).lost(state).bit_count()


def fragmented_mask(
    state: CardState, offered: tuple[Profile, ...], *, grid: int, layout: Geometry | None = None
) -> int:
    """Return those units as bits; a layout fixes the card's cut, so only its own free slices can be sold."""
    free = ~state.mask & ((1 << grid) - 1)
    if layout is not None:
        sellable = 0
        for held in layout.held:
            if held.profile in offered and state.fits(held.profile, held.placement):
                sellable |= held.placement.mask
        return free & ~sellable
    kinds = {state.isolation} if state.isolation else {profile.isolation for profile in offered}
    left = [_units(offered, kind, grid).left(state.mask, state.media) for kind in sorted(kinds)]
    return min(left, key=int.bit_count, default=free)


class Wares:
    """What is sold on cards of one kind; which free units it leaves is remembered for every state asked for."""

    def __init__(self, offered: tuple[Profile, ...], grid: int, layout: Geometry | None) -> None:
        self.offered, self.grid, self.layout = offered, grid, layout
        self._lost: dict[tuple[int, bool, Isolation | None], int] = {}

    def lost(self, state: CardState) -> int:
        """Return as bits the free units that nothing of it can be sold on."""
        key = state.mask, state.media, state.isolation
        known = self._lost.get(key)
        if known is None:
            known = fragmented_mask(state, self.offered, grid=self.grid, layout=self.layout)
            self._lost[key] = known
        return known


@lru_cache(maxsize=256)
def wares(offered: tuple[Profile, ...], grid: int, layout: Geometry | None = None) -> Wares:
    """Return the one object for these: all cards of a kind share what is remembered."""
    return Wares(offered, grid, layout)


@lru_cache(maxsize=256)
def _units(offered: tuple[Profile, ...], isolation: Isolation, grid: int) -> Packing:
    fitting = (profile for profile in offered if profile.isolation is isolation)
    return Packing(seats_of(fitting), grid=grid, worth=lambda profile: profile.memory)


def most_of(profile: Profile, state: CardState, cut: Cut) -> int:
    """Return exactly how many of one profile a card in this state could still take."""
    if state.isolation not in (None, profile.isolation) or (profile.media and state.media):
        return 0
    count, free_from = 0, 0
    # Taking the one that ends first never costs another: the classic answer for intervals, and exact.
    for placement in sorted(placements_of(profile, cut), key=lambda each: each.end):
        if placement.start >= free_from and not placement.mask & state.mask:
            count, free_from = count + 1, placement.end
    return min(count, 1) if profile.media else count
