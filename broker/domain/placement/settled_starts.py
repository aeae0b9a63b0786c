"""Starts of one GPU's slices, some of them chosen by its cluster.

Slices whose device is known lie where it is. The others, whose claims wait for a device, keep their start if it is
free and otherwise get another one: their claims accept any.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from broker.domain.geometry.gpu_state import EMPTY_GPU, GpuState
from broker.domain.geometry.profiles import Placement, Profile
from broker.domain.geometry.published_profiles import Partitioning, available_placements


@dataclass(frozen=True, slots=True)
class BookedSlice:
    """A slice of a GPU as it is booked, and where its device is."""

    allocation: str
    profile: Profile
    start: int
    device_start: int | None = None  # None: no device is known
    may_leave: bool = False  # its lease has not begun, and can be placed elsewhere


@dataclass(frozen=True, slots=True)
class SettledStarts:
    """New starts by allocation, and allocations that have no place on the GPU any more."""

    starts: dict[str, int]
    displaced: tuple[str, ...] = ()


def settle_starts(booked: Sequence[BookedSlice], cut: Partitioning, *, promised: int = 0) -> SettledStarts | None:
    """Return where the slices of a GPU lie, the oldest first in `booked`.

    As few as possible are displaced, the newest first. Units in the mask `promised` are used last. None: a slice
    has no place and may not leave, or two devices overlap, since they were not observed at the same moment.
    """
    state = EMPTY_GPU
    for each in booked:
        if each.device_start is not None:
            place = each.profile.placed_at(each.device_start)
            if not state.fits(each.profile, place):
                return None
            state = state.with_held(each.profile, place)
    known = {each.allocation: each.device_start for each in booked if each.device_start is not None}
    waiting = [each for each in booked if each.device_start is None]
    for displaced in _subsets_that_may_leave(waiting):
        chosen = _find_starts([each for each in waiting if each not in displaced], state, cut, promised)
        if chosen is not None:
            starts = known | chosen
            changed = {
                each.allocation: starts[each.allocation]
                for each in booked
                if starts.get(each.allocation, each.start) != each.start
            }
            return SettledStarts(changed, tuple(each.allocation for each in displaced))
    return None


def _subsets_that_may_leave(waiting: Sequence[BookedSlice]) -> Iterator[tuple[BookedSlice, ...]]:
    """Yield the sets of slices to displace: small ones first, then newer ones."""
    newest_first = [each for each in reversed(waiting) if each.may_leave]
    for count in range(len(newest_first) + 1):
        yield from combinations(newest_first, count)


def _find_starts(
    waiting: Sequence[BookedSlice], state: GpuState, cut: Partitioning, promised: int
) -> dict[str, int] | None:
    """Return a start for each waiting slice; None if they do not fit together."""
    if not waiting:
        return {}
    first, rest = waiting[0], waiting[1:]
    for place in _places_to_try(first, cut, promised):
        if state.fits(first.profile, place):
            others = _find_starts(rest, state.with_held(first.profile, place), cut, promised)
            if others is not None:
                return {first.allocation: place.start, **others}
    return None


def _places_to_try(each: BookedSlice, cut: Partitioning, promised: int) -> list[Placement]:
    own = each.profile.placed_at(each.start)
    others = [place for place in available_placements(each.profile, cut) if place != own]
    return [own, *sorted(others, key=lambda place: (place.mask & promised != 0, place.start))]
