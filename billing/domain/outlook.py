"""What days to come will likely cost: as the same weekdays of the weeks before, give or take how those differed.

A rhythm is of whole days; amounts are integers of any unit, none below nought. Fewer than two weeks tell no rhythm.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

WEEK = 7
LEAST, MOST = 2 * WEEK, 4 * WEEK  # days to judge by: fewer say too little, older ones of another time
# Four of five times an amount that differs as a bell curve says lies within so many hundredths of the deviation that so
# many days tell of: Student's t for 7, 14 and 21 that are free to differ.
FOUR_OF_FIVE = ((21, 133), (14, 135), (0, 142))


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
        free = max(len(off) - WEEK, 1)
        self.spread = sum(off) // free  # what one day differs by, squared
        self.sure = next(hundredths for least, hundredths in FOUR_OF_FIVE if free >= least)
        self.seen = [len(days) for days in alike]

    @property
    def known(self) -> bool:
        """Whether there are days enough to tell anything."""
        return len(self.past) >= LEAST

    def ahead(self, days: int, *, left_of_first: Fraction = Fraction(1)) -> Iterator[Ahead]:
        """Tell so many days to come, the first of which is today with only this part of it left."""
        amount, parts = 0, [Fraction(0)] * WEEK
        for n in range(days):
            part = left_of_first if n == 0 else Fraction(1)
            weekday = WEEK - 1 - n % WEEK
            of_day = int(self.usual[weekday] * part)
            amount += of_day
            parts[weekday] += part
            alone = [part if each == weekday else Fraction(0) for each in range(WEEK)]
            yield Ahead(self._likely(of_day, alone), self._likely(amount, parts))

    def _likely(self, amount: int, parts: Sequence[Fraction]) -> Likely:
        """Say how far off it may be: days differ each for itself, and what is usual was seen few times only.

        The latter errs the same way each week, so over a month it weighs more than the days themselves.
        """
        off = sum(part + part * part / max(seen, 1) for part, seen in zip(parts, self.seen, strict=True))
        either_way = self.sure * isqrt(int(self.spread * off)) // 100
        return Likely(amount, max(amount - either_way, 0), amount + either_way)
