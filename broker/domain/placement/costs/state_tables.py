"""State tables: all states of a GPU kind, numbered, and all placement options."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from broker.domain.geometry.profiles import Placement, Profile

EMPTY = 0  # number of the state in which nothing is taken
NO_STATE = -1  # not a state: the slice does not fit there, or is not there to be removed
NextStates = dict[int, tuple[int, ...]]  # by first unit of a slice, the next state for each state


class PlacementOption(NamedTuple):
    """A possible placement of a slice: its first unit, and the GPU state after it."""

    start: int
    next_state: int


@dataclass(frozen=True)
class StateTable:
    """All states and transitions of GPUs with these profiles.

    A state is the units taken as bits, above them one bit while the media engines are taken, and above
    that the isolation the GPU is partitioned for, counted in the order in which the profiles'
    isolations come: all that decides what still fits. A table that counts has above that the number of
    slices. Only reachable states are numbered, from 0, which is the empty GPU.
    """

    grid: int
    profiles: tuple[Profile, ...]
    states: tuple[int, ...]
    options: tuple[tuple[tuple[PlacementOption, ...], ...], ...]  # by profile, then by state
    state_numbers: dict[int, int]  # number of every state, by its bits
    state_with: tuple[NextStates, ...]  # by profile
    state_without: tuple[NextStates, ...]

    @property
    def media_bit(self) -> int:
        return 1 << self.grid

    def slice_bits(self, profile: int, start: int) -> int:
        """Return the bits of a state with only this slice, without its count."""
        return self.bits_without_count(self.state_with[profile][start][EMPTY])

    def bits_without_count(self, state: int) -> int:
        """Return the bits of a state except for the count."""
        return self.states[state] & ((1 << _count_shift(self.grid)) - 1)

    def slice_count(self, state: int) -> int:
        """Return the number of slices on a GPU; 0 in a table without counts."""
        return self.states[state] >> _count_shift(self.grid)

    def state_after_removing(self, state: int, profile: int, start: int) -> int:
        """Return the state after removing a slice; KeyError if it was not there."""
        after = self.state_without[profile][start][state]
        if after == NO_STATE:
            name = self.profiles[profile].name
            raise KeyError(f"{name} at unit {start} is not on a GPU in state {self.states[state]:b}")
        return after

    def free_units(self, state: int) -> int:
        """Return how many units are not taken."""
        return self.grid - (self.states[state] & (self.media_bit - 1)).bit_count()


def build_state_table(
    profiles: Sequence[Profile], grid: int, *, counted: bool = False, existing: Sequence[Profile] = ()
) -> StateTable:
    """Build the table of every state reachable with slices of these profiles.

    `counted` also distinguishes GPUs by their number of slices. `existing` may lie on a GPU, but is not
    placed any more: the table has its states, and no options for it. Raises ValueError for a profile
    with placements that no GPU of this grid has.
    """
    for profile in (*profiles, *existing):
        _check_placements(profile, grid)
    bits = _StateBits(grid, counted)
    isolations = list(dict.fromkeys(profile.isolation for profile in (*profiles, *existing)))

    def slots_of(profile: Profile) -> dict[int, int]:
        isolation = isolations.index(profile.isolation)
        return {place.start: bits.of_slice(profile, place, isolation) for place in profile.placements}

    slots = [slots_of(profile) for profile in profiles]
    states = bits.reachable([slot for its in (*slots, *map(slots_of, existing)) for slot in its.values()])
    number = {state: n for n, state in enumerate(states)}

    def next_states(change: Callable[[int, int], int], its: dict[int, int]) -> NextStates:
        # One extra entry, reached by index -1: the state of a removed GPU, which never changes.
        return {
            start: (*(number.get(change(state, slot), NO_STATE) for state in states), NO_STATE)
            for start, slot in its.items()
        }

    state_with = tuple(next_states(bits.with_slice, its) for its in slots)
    state_without = tuple(next_states(bits.without_slice, its) for its in slots)
    options = tuple(
        tuple(
            tuple(PlacementOption(at, after[state]) for at, after in its.items() if after[state] != NO_STATE)
            for state in range(len(states))
        )
        for its in state_with
    )
    return StateTable(grid, tuple(profiles), states, options, number, state_with, state_without)


def _check_placements(profile: Profile, grid: int) -> None:
    starts = [place.start for place in profile.placements]
    if len(set(starts)) < len(starts):
        raise ValueError(f"{profile.name} starts twice at the same unit: {sorted(starts)}")
    for place in profile.placements:
        if place.start < 0 or place.end > grid or place.size != profile.memory:
            raise ValueError(
                f"{profile.name} of {profile.memory} units cannot occupy units {place.start} to {place.end - 1}"
                f" of a GPU of {grid}"
            )


def _count_shift(grid: int) -> int:
    """Return the position of the slice count among the bits of a state.

    Below it are units, media engines, and one of four isolations.
    """
    return grid + 3


class _StateBits:
    """States as bits, and the effect of slices on them.

    NO_STATE stands for a slice that does not fit or is not there.
    """

    def __init__(self, grid: int, counted: bool) -> None:
        self.grid, self.isolation_shift = grid, grid + 1
        self.taken_mask = (1 << self.isolation_shift) - 1
        self.isolation_mask = (1 << _count_shift(grid)) - 1 - self.taken_mask
        self.one_slice = counted << _count_shift(grid)

    def of_slice(self, profile: Profile, place: Placement, isolation: int) -> int:
        return place.mask | (profile.media << self.grid) | (isolation << self.isolation_shift)

    def with_slice(self, state: int, slot: int) -> int:
        if state & slot & self.taken_mask or (state and (state ^ slot) & self.isolation_mask):
            return NO_STATE
        return (state | slot) + self.one_slice

    def without_slice(self, state: int, slot: int) -> int:
        if ~state & slot & self.taken_mask or (state ^ slot) & self.isolation_mask:
            return NO_STATE
        after = (state & ~(slot & self.taken_mask)) - self.one_slice
        return after if after & self.taken_mask else EMPTY

    def reachable(self, slots: Sequence[int]) -> tuple[int, ...]:
        """Return every reachable state in order; placing a slice always increases it."""
        found, new = {0}, [0]
        while new:
            state = new.pop()
            for slot in slots:
                after = self.with_slice(state, slot)
                if after != NO_STATE and after not in found:
                    found.add(after)
                    new.append(after)
        return tuple(sorted(found))
