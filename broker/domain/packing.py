"""The best use of the free units of a card, exactly, for every state that is asked for."""

from collections.abc import Callable, Iterable
from functools import lru_cache

from broker.domain.geometry import CardState, Geometry, Held
from broker.domain.profiles import Profile
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
        best = self.best(mask | lowest, media)
        for seat in self._starting_at[lowest.bit_length() - 1]:
            if seat.placement.mask & mask or (media and seat.profile.media):
                continue
            rest = self.best(mask | seat.placement.mask, media or seat.profile.media)
            best = max(best, self._worth(seat.profile) + rest)
        return best


def seats_of(profiles: Iterable[Profile]) -> tuple[Held, ...]:
    """Return every placement of every profile."""
    return tuple(Held(placement, profile) for profile in profiles for placement in profile.placements)


def fragmented_units(state: CardState, offered: tuple[Profile, ...], *, grid: int) -> int:
    """Return how many free units of a card nothing that is offered can be sold on.

    That is the free units less the most units that offered profiles can fill together, beside what is
    held: the eighth unit beside seven 1g slices, or everything beside a slice where only whole cards sell.
    """
    free = grid - state.mask.bit_count()
    kinds = {state.isolation} if state.isolation else {profile.isolation for profile in offered}
    packable = [_units(offered, kind, grid).best(state.mask, state.media) for kind in kinds]
    return free - max(packable, default=0)


@lru_cache(maxsize=256)
def _units(offered: tuple[Profile, ...], isolation: Isolation, grid: int) -> Packing:
    fitting = (profile for profile in offered if profile.isolation is isolation)
    return Packing(seats_of(fitting), grid=grid, worth=lambda profile: profile.memory)


def most_of(profile: Profile, state: CardState, layout: Geometry | None) -> int:
    """Return exactly how many of one profile a card in this state could still take."""
    if state.isolation not in (None, profile.isolation) or (profile.media and state.media):
        return 0
    placements = profile.placements
    if layout is not None:
        placements = tuple(held.placement for held in layout.held if held.profile == profile)
    count, free_from = 0, 0
    # Taking the one that ends first never costs another: the classic answer for intervals, and exact.
    for placement in sorted(placements, key=lambda each: each.end):
        if placement.start >= free_from and not placement.mask & state.mask:
            count, free_from = count + 1, placement.end
    return min(count, 1) if profile.media else count
