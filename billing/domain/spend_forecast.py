"""Forecast of daily cost from the same weekdays of past weeks, with 80 % intervals.

The pattern is of whole days; amounts are integers of any unit, never negative. Less than two weeks of
history give no forecast.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

WEEK = 7
MIN_DAYS, MAX_DAYS = 2 * WEEK, 4 * WEEK  # days of history: fewer are too few, older ones are outdated
# Student's t for an 80 % interval, in hundredths, by degrees of freedom (one, two or three weeks).
T_80_PERCENT = ((21, 133), (14, 135), (0, 142))


@dataclass(frozen=True, slots=True)
class ExpectedCost:
    """An expected amount with its 80 % interval."""

    amount: int
    low: int
    high: int

    def plus(self, known: int) -> "ExpectedCost":
        """Return the amount with a known amount added."""
        return ExpectedCost(known + self.amount, known + self.low, known + self.high)


@dataclass(frozen=True, slots=True)
class ForecastDay:
    """A future day: its expected cost, and the expected cost until its end."""

    day: ExpectedCost
    until_then: ExpectedCost


class WeeklyPattern:
    """The weekly pattern of past daily costs, until yesterday.

    Days before the first one that cost anything are not counted.
    """

    def __init__(self, past: Sequence[int]) -> None:
        first = next((n for n, amount in enumerate(past) if amount), len(past))
        self.past = past[first:][-MAX_DAYS:]
        alike = [self.past[-1 - n :: -WEEK] for n in range(WEEK)]  # by weekday, yesterday's first
        self.usual = [sum(days) // len(days) if days else 0 for days in alike]
        off = [(amount - self.usual[n % WEEK]) ** 2 for n, amount in enumerate(reversed(self.past))]
        free = max(len(off) - WEEK, 1)
        self.spread = sum(off) // free  # variance of one day
        self.sure = next(hundredths for least, hundredths in T_80_PERCENT if free >= least)
        self.seen = [len(days) for days in alike]

    @property
    def has_enough_history(self) -> bool:
        """Whether there are enough days for a forecast."""
        return len(self.past) >= MIN_DAYS

    def forecast_days(self, days: int, *, left_of_first: Fraction = Fraction(1)) -> Iterator[ForecastDay]:
        """Yield the forecast of the next days.

        The first is today, which counts with the fraction that is left of it.
        """
        amount, parts = 0, [Fraction(0)] * WEEK
        for n in range(days):
            part = left_of_first if n == 0 else Fraction(1)
            weekday = WEEK - 1 - n % WEEK
            of_day = int(self.usual[weekday] * part)
            amount += of_day
            parts[weekday] += part
            alone = [part if each == weekday else Fraction(0) for each in range(WEEK)]
            yield ForecastDay(self._likely(of_day, alone), self._likely(amount, parts))

    def _likely(self, amount: int, parts: Sequence[Fraction]) -> ExpectedCost:
        """Return the amount with its interval.

        Two errors add up: single days vary independently, and the usual value of a weekday was estimated
        from few weeks. The second errs the same way each week, so over a month it weighs more.
        """
        off = sum(part + part * part / max(seen, 1) for part, seen in zip(parts, self.seen, strict=True))
        either_way = self.sure * isqrt(int(self.spread * off)) // 100
        return ExpectedCost(amount, max(amount - either_way, 0), amount + either_way)
