"""Increase of a counter between two readings, across resets and wraps.

Energy in mJ, PCIe replays and bytes on links only ever grow, until the driver restarts (they begin at zero again) or
the field is full (32 bits on older drivers).
"""

from dataclasses import dataclass

WRAP_SHARE = 0.9  # a 32-bit counter that falls from its last tenth has wrapped; from anywhere else it was reset
FULL_32_BIT = 2**32


@dataclass(frozen=True, slots=True)
class CounterIncrease:
    """How much a counter grew, and whether that had to be concluded."""

    amount: int
    restarted: bool = False  # reset or wrapped between the two readings


def counter_increase(before: int | None, now: int, *, bits: int = 64) -> CounterIncrease:
    """Return how much a counter grew since its last reading.

    Without a last reading nothing is known of it: 0. A smaller value than before is a wrap if the field has 32 bits
    and was nearly full, and else a reset, since which it grew by what it shows now.
    """
    if before is None:
        return CounterIncrease(0)
    if now >= before:
        return CounterIncrease(now - before)
    if bits == 32 and before >= FULL_32_BIT * WRAP_SHARE:
        return CounterIncrease(now + FULL_32_BIT - before, restarted=True)
    return CounterIncrease(now, restarted=True)
