"""The published ways to choose a card and a first unit, each as the cost of a move; smaller is better."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from bench.placing.cards import DOUBLE, ONE, PROFILES, TABLE, THREE, WEIGHTS
from broker.domain.placement.ranks import Rule
from broker.domain.placement.tables import EMPTY, Move, Table

COMPUTE = 0x7F  # the units that a compute slice stands behind
KINDS = range(len(PROFILES))


@cache
def free(state: int) -> int:
    """Return how many compute slices are not taken."""
    return 7 - (TABLE.states[state] & COMPUTE).bit_count()


@cache
def legal(state: int) -> int:
    """Return how many placements are still legal."""
    return sum(len(TABLE.moves[profile][state]) for profile in KINDS)


def fits(profile: int, state: int) -> bool:
    return bool(TABLE.moves[profile][state])


def in_vendor_order(table: Table, profile: int, state: int, move: Move) -> tuple[Any, ...]:
    """Start where most placements stay legal; of equals at the higher unit."""
    return -legal(move.after), -move.start


def in_hami_order(table: Table, profile: int, state: int, move: Move) -> tuple[Any, ...]:
    """Start high with what is one slice or three wide, else low."""
    return (-move.start if profile in (ONE, DOUBLE, THREE) else move.start,)


def best_fit(table: Table, profile: int, state: int, move: Move) -> tuple[Any, ...]:
    """Leave fewest compute slices free on the card, and start there in the vendor's order."""
    first = min(table.moves[profile][state], key=lambda each: in_vendor_order(table, profile, state, each))
    return move != first, free(move.after)


def most_legal(table: Table, profile: int, state: int, move: Move) -> tuple[Any, ...]:
    """Leave most placements legal on the card (MCC)."""
    return (-legal(move.after),)


@cache
def blocked(state: int) -> int:
    """Return the units of all placements that something is in the way of, of profiles whose compute is left."""
    mask = TABLE.states[state]
    return sum(
        placement.size
        for profile in PROFILES
        if profile.compute <= free(state)
        for placement in profile.placements
        if placement.mask & mask
    )


def least_blocked(table: Table, profile: int, state: int, move: Move) -> tuple[Any, ...]:
    """Block least more than is blocked now (MFI)."""
    return blocked(move.after) - blocked(state), free(move.after)


def fragmenting(popularity: Sequence[float]) -> Callable[[int], float]:
    """Return by state how many free compute slices the profiles asked for cannot use, as FGD counts them."""
    return cache(lambda state: free(state) * sum(popularity[p] for p in KINDS if not fits(p, state)))


def fgd(popularity: Sequence[float], *, fullest: bool = False) -> Rule:
    """Fragment least more than now; of equals, if asked, take the fullest."""
    f = fragmenting(popularity)

    def rule(table: Table, profile: int, state: int, move: Move) -> tuple[Any, ...]:
        more = round(f(move.after) - f(state), 9)
        return (more, free(move.after)) if fullest else (more,)

    return rule


def packable(worth: Sequence[float]) -> Callable[[int], float]:
    """Return by state what the best set of slices that still goes onto the card is worth."""

    @cache
    def value(state: int) -> float:
        return max((worth[p] + value(m.after) for p in KINDS for m in TABLE.moves[p][state]), default=0.0)

    return value


def compute_value(popularity: Sequence[float]) -> Rule:
    """Keep cards empty, then lose least of the compute slices that could still be packed, then fragment least (PVB)."""
    value, f = packable([float(each) for each in WEIGHTS]), fragmenting(popularity)

    def rule(table: Table, profile: int, state: int, move: Move) -> tuple[Any, ...]:
        loss = round(value(state) - value(move.after), 4)
        return state == EMPTY, loss, round(f(move.after) - f(state), 9), free(move.after)

    return rule
