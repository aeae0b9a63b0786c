"""Every state that a card of one kind can be in, numbered, and every way to put a slice on it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from broker.domain.profiles import Placement, Profile

EMPTY = 0  # the number of the state in which nothing is taken
NOWHERE = -1  # instead of a state: the slice cannot be put there, or is not there to be taken off
Afters = dict[int, tuple[int, ...]]  # by the unit a slice begins at, the state after each state


class Move(NamedTuple):
    """One slice put on a card: its first unit, and the number of the state after it."""

    start: int
    after: int


@dataclass(frozen=True)
class Table:
    """What can become of a card that is cut into these profiles, whichever way and in whichever order.

    A state is the units taken as bits, above them one bit while the media engines are taken, and above that what
    the card is cut for, counted in the order in which the profiles' isolations come: all that decides what still
    fits. A table that counts has above that how many slices there are. The number of a state counts the states
    that can be reached, from nought, which is the empty card.
    """

    grid: int
    profiles: tuple[Profile, ...]
    states: tuple[int, ...]
    moves: tuple[tuple[tuple[Move, ...], ...], ...]  # by profile, then by state
    number: dict[int, int]  # of every state by its bits
    put: tuple[Afters, ...]  # by profile
    gone: tuple[Afters, ...]

    @property
    def media(self) -> int:
        return 1 << self.grid

    def bits(self, profile: int, start: int) -> int:
        """Return the bits of a state in which nothing but this slice is taken, without its count."""
        return self.without_count(self.put[profile][start][EMPTY])

    def without_count(self, state: int) -> int:
        """Return the bits of a state but for the count."""
        return self.states[state] & ((1 << _counting(self.grid)) - 1)

    def count(self, state: int) -> int:
        """Return how many slices there are on a card; nought for all in a table that does not count."""
        return self.states[state] >> _counting(self.grid)

    def without(self, state: int, profile: int, start: int) -> int:
        """Return the state after a slice has gone; raises KeyError for one that was not there."""
        after = self.gone[profile][start][state]
        if after == NOWHERE:
            name = self.profiles[profile].name
            raise KeyError(f"{name} at unit {start} is not on a card in state {self.states[state]:b}")
        return after

    def free(self, state: int) -> int:
        """Return how many units are not taken."""
        return self.grid - (self.states[state] & (self.media - 1)).bit_count()


def table_of(
    profiles: Sequence[Profile], grid: int, *, counted: bool = False, besides: Sequence[Profile] = ()
) -> Table:
    """Number every state that can be reached by putting slices of these profiles on a card and taking them off.

    `counted` tells cards apart by how many slices they hold as well. `besides` may lie on a card, but is not put there
    any more: the table has the states that come of it, and no moves. Raises ValueError for a profile with places
    that no card of this grid has.
    """
    for profile in (*profiles, *besides):
        _must_lie(profile, grid)
    bits = _Bits(grid, counted)
    kinds = list(dict.fromkeys(profile.isolation for profile in (*profiles, *besides)))

    def seats_of(profile: Profile) -> dict[int, int]:
        kind = kinds.index(profile.isolation)
        return {place.start: bits.of(profile, place, kind) for place in profile.placements}

    seats = [seats_of(profile) for profile in profiles]
    states = bits.reachable([seat for its in (*seats, *map(seats_of, besides)) for seat in its.values()])
    number = {state: n for n, state in enumerate(states)}

    def afters(change: Callable[[int, int], int], its: dict[int, int]) -> Afters:
        # One more than there are states: of a card that is gone, whose state is NOWHERE, nothing can become.
        return {
            start: (*(number.get(change(state, seat), NOWHERE) for state in states), NOWHERE)
            for start, seat in its.items()
        }

    put = tuple(afters(bits.with_, its) for its in seats)
    gone = tuple(afters(bits.less, its) for its in seats)
    moves = tuple(
        tuple(
            tuple(Move(at, after[state]) for at, after in its.items() if after[state] != NOWHERE)
            for state in range(len(states))
        )
        for its in put
    )
    return Table(grid, tuple(profiles), states, moves, number, put, gone)


def _must_lie(profile: Profile, grid: int) -> None:
    starts = [place.start for place in profile.placements]
    if len(set(starts)) < len(starts):
        raise ValueError(f"{profile.name} begins twice at the same unit: {sorted(starts)}")
    for place in profile.placements:
        if place.start < 0 or place.end > grid or place.size != profile.memory:
            raise ValueError(
                f"{profile.name} of {profile.memory} units cannot lie on units {place.start} to {place.end - 1}"
                f" of a card of {grid}"
            )


def _counting(grid: int) -> int:
    """Return above how many bits the slices are counted: units, media engines, one of four isolations."""
    return grid + 3


class _Bits:
    """States as bits, and what slices do to them; NOWHERE where one does not fit or is not there."""

    def __init__(self, grid: int, counted: bool) -> None:
        self.grid, self.above = grid, grid + 1
        self.taken = (1 << self.above) - 1
        self.kind = (1 << _counting(grid)) - 1 - self.taken
        self.one = counted << _counting(grid)

    def of(self, profile: Profile, place: Placement, kind: int) -> int:
        return place.mask | (profile.media << self.grid) | (kind << self.above)

    def with_(self, state: int, seat: int) -> int:
        if state & seat & self.taken or (state and (state ^ seat) & self.kind):
            return NOWHERE
        return (state | seat) + self.one

    def less(self, state: int, seat: int) -> int:
        if ~state & seat & self.taken or (state ^ seat) & self.kind:
            return NOWHERE
        left = (state & ~(seat & self.taken)) - self.one
        return left if left & self.taken else EMPTY

    def reachable(self, seats: Sequence[int]) -> tuple[int, ...]:
        """Return every state that there is, in order: a card only ever grows to a greater one."""
        found, new = {0}, [0]
        while new:
            state = new.pop()
            for seat in seats:
                after = self.with_(state, seat)
                if after != NOWHERE and after not in found:
                    found.add(after)
                    new.append(after)
        return tuple(sorted(found))
