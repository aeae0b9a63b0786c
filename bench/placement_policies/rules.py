"""Published rules for choosing GPU and placement, as costs; smaller is better."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from bench.placement_policies.gpu_profiles import DOUBLE, ONE, PROFILES, TABLE, THREE, WEIGHTS
from broker.domain.placement.costs.state_ranks import CostRule
from broker.domain.placement.costs.state_tables import EMPTY, PlacementOption, StateTable

COMPUTE = 0x7F  # the units that a compute slice stands behind
KINDS = range(len(PROFILES))


@cache
def free(state: int) -> int:
    """Return the number of free compute slices."""
    return 7 - (TABLE.states[state] & COMPUTE).bit_count()


@cache
def legal(state: int) -> int:
    """Return how many placements are still legal."""
    return sum(len(TABLE.options[profile][state]) for profile in KINDS)


def fits(profile: int, state: int) -> bool:
    return bool(TABLE.options[profile][state])


def in_vendor_order(table: StateTable, profile: int, state: int, move: PlacementOption) -> tuple[Any, ...]:
    """Start where most placements stay legal; of equals at the higher unit."""
    return -legal(move.next_state), -move.start


def in_hami_order(table: StateTable, profile: int, state: int, move: PlacementOption) -> tuple[Any, ...]:
    """Start high for profiles of one slice or of width three, else low."""
    return (-move.start if profile in (ONE, DOUBLE, THREE) else move.start,)


def best_fit(table: StateTable, profile: int, state: int, move: PlacementOption) -> tuple[Any, ...]:
    """Leave fewest free compute slices on the GPU, in the vendor's order."""
    first = min(table.options[profile][state], key=lambda each: in_vendor_order(table, profile, state, each))
    return move != first, free(move.next_state)


def most_legal(table: StateTable, profile: int, state: int, move: PlacementOption) -> tuple[Any, ...]:
    """Leave most placements legal on the GPU (MCC)."""
    return (-legal(move.next_state),)


@cache
def blocked(state: int) -> int:
    """Return the units of blocked placements, of profiles with compute left."""
    mask = TABLE.states[state]
    return sum(
        placement.size
        for profile in PROFILES
        if profile.compute <= free(state)
        for placement in profile.placements
        if placement.mask & mask
    )


def least_blocked(table: StateTable, profile: int, state: int, move: PlacementOption) -> tuple[Any, ...]:
    """Add the fewest blocked units (MFI)."""
    return blocked(move.next_state) - blocked(state), free(move.next_state)


def fragmenting(popularity: Sequence[float]) -> Callable[[int], float]:
    """Return by state the free compute slices the requested profiles cannot use (FGD)."""
    return cache(lambda state: free(state) * sum(popularity[p] for p in KINDS if not fits(p, state)))


def fgd(popularity: Sequence[float], *, fullest: bool = False) -> CostRule:
    """Add least fragmentation; of equals, optionally the fullest."""
    f = fragmenting(popularity)

    def rule(table: StateTable, profile: int, state: int, move: PlacementOption) -> tuple[Any, ...]:
        more = round(f(move.next_state) - f(state), 9)
        return (more, free(move.next_state)) if fullest else (more,)

    return rule


def packable(worth: Sequence[float]) -> Callable[[int], float]:
    """Return by state the value of the best set of slices that still fits."""

    @cache
    def value(state: int) -> float:
        return max((worth[p] + value(m.next_state) for p in KINDS for m in TABLE.options[p][state]), default=0.0)

    return value


def compute_value(popularity: Sequence[float]) -> CostRule:
    """Keep GPUs empty, then lose least packable compute, then fragment least (PVB)."""
    value, f = packable([float(each) for each in WEIGHTS]), fragmenting(popularity)

    def rule(table: StateTable, profile: int, state: int, move: PlacementOption) -> tuple[Any, ...]:
        loss = round(value(state) - value(move.next_state), 4)
        return state == EMPTY, loss, round(f(move.next_state) - f(state), 9), free(move.next_state)

    return rule
