"""Share the energy of a GPU among what ran on it, to the last millijoule.

Idle power belongs to slices by their memory, whoever holds them; the rest by activity and compute slices. Sums are
exact: leases and the unsold part together are the device.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class SliceUse:
    """One held slice of a GPU during an interval."""

    memory_slices: int
    compute_slices: int
    engine_active: int | None  # mean per mille; None: unknown, which counts as the mean of those that are known


def share_energy(total_mj: int, *, idle_mj: int, grid: int, uses: Sequence[SliceUse]) -> tuple[list[int], int]:
    """Return each slice's energy in mJ and that of the unsold part.

    `idle_mj` is what the GPU takes doing nothing for as long, `grid` its number of memory slices. Nobody was active:
    all of it is shared by memory.
    """
    idle = min(idle_mj, total_mj)
    weights = _activity_weights(uses)
    busy = sum(weights)
    if not busy:
        idle = total_mj
    parts = [
        Fraction(idle * use.memory_slices, grid) + (Fraction(total_mj - idle) * weight / busy if busy else 0)
        for use, weight in zip(uses, weights, strict=True)
    ]
    unsold = Fraction(total_mj) - sum(parts)
    *shares, rest = _round_to_total([*parts, unsold], total_mj)
    return shares, rest


def _activity_weights(uses: Sequence[SliceUse]) -> list[Fraction]:
    """Return activity times compute slices, the mean where it is unknown."""
    known = [use.engine_active for use in uses if use.engine_active is not None]
    mean = Fraction(sum(known), len(known)) if known else Fraction(1)
    return [(mean if use.engine_active is None else Fraction(use.engine_active)) * use.compute_slices for use in uses]


def _round_to_total(parts: Sequence[Fraction], total: int) -> list[int]:
    """Round parts to whole numbers of the given sum, the largest remainders up."""
    whole = [int(part) for part in parts]
    missing = total - sum(whole)
    order = sorted(range(len(parts)), key=lambda each: (whole[each] - parts[each], each))
    for each in order[:missing]:
        whole[each] += 1
    return whole
