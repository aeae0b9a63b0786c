"""What days to come will likely cost: as the same weekdays of the weeks before, give or take how those differed.

A rhythm is of whole days; amounts are integers of any unit, none below nought. Fewer than two weeks tell no rhythm.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

WEEK = 7
LEAST, MOST = 2 * WEEK, 4 * WEEK  # days to judge by: fewer say too little, older ones of another time
# Four of five days that differ as a bell curve says lie within so many hundredths of its deviation.
FOUR_OF_FIVE = 128


@dataclass(frozen=True, slots=True)
class Likely:
    """An amount that is not known yet, and between which four of five times it will lie."""

    amount: int
    low: int
    high: int

    def after(self, known: int) -> "Likely":
        """Return what it comes to with what is known already."""
        return Likely(known + self.amount, known + self.low, known + self.high)


@dataclass(frozen=True, slots=True)
class Ahead:
    """A day to come: what it will likely cost, and what it and those before it come to."""

    day: Likely
    until_then: Likely


class Rhythm:
    """How days went until yesterday. Days before the first that cost anything are not counted."""

    def __init__(self, past: Sequence[int]) -> None:
        first = next((n for n, amount in enumerate(past) if amount), len(past))
        self.past = past[first:][-MOST:]
        alike = [self.past[-1 - n :: -WEEK] for n in range(WEEK)]  # yesterday's weekday first
        self.usual = [sum(days) // len(days) if days else 0 for days in alike]
        off = [(amount - self.usual[n % WEEK]) ** 2 for n, amount in enumerate(reversed(self.past))]
        self.spread = sum(off) // max(len(off) - WEEK, 1)  # what one day differs by, squared

    @property
    def known(self) -> bool:
        """Whether there are days enough to tell anything."""
        return len(self.past) >= LEAST

    def ahead(self, days: int, *, left_of_first: Fraction = Fraction(1)) -> Iterator[Ahead]:
        """Tell so many days to come, the first of which is today with only this part of it left."""
        amount, parts = 0, Fraction(0)
        for n in range(days):
            part = left_of_first if n == 0 else Fraction(1)
            of_day = int(self.usual[-1 - n % WEEK] * part)
            amount, parts = amount + of_day, parts + part
            yield Ahead(self._likely(of_day, part), self._likely(amount, parts))

    def _likely(self, amount: int, parts: Fraction) -> Likely:
        either_way = FOUR_OF_FIVE * isqrt(int(self.spread * parts)) // 100
        return Likely(amount, max(amount - either_way, 0), amount + either_way)
