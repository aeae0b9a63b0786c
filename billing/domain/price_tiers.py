"""Tiered and package prices, which depend on a month's usage; integers throughout.

A tier is the usage from which its price applies, so tiers have no gaps or overlaps by construction
(B23). Below the first tier the base price applies, and no tier is more expensive than it.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

HOUR = 3600


@dataclass(frozen=True, slots=True)
class TieredPrice:
    """A price with tiers or packages.

    `starts` are unit-seconds, ascending and above zero; `prices` is what an hour costs from each on. A
    package has one entry: its size and its price.
    """

    model: str  # graduated, volume, package
    nano_per_hour: int
    starts: tuple[int, ...]
    prices: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.starts or len(self.starts) != len(self.prices):
            raise ValueError("every tier has a start and a price")
        if self.starts[0] <= 0 or any(a >= b for a, b in pairwise(self.starts)):
            raise ValueError("tiers are in order, none twice, and the first begins above nought")
        if min(self.prices) < 0:
            raise ValueError("a price is not below nought")
        if self.model == "package":
            if len(self.starts) != 1 or self.prices[0] * HOUR > self.starts[0] * self.nano_per_hour:
                raise ValueError("a package is of one size, and costs no more than its hours")
        elif max(self.prices) > self.nano_per_hour:
            raise ValueError("no tier costs more than the price itself, which is what is held for")

    def savings(self, since: int, until: int, *, total: int) -> int:
        """Return how much cheaper usage is than at the base price, over 3600·10⁹.

        The usage is the range [since, until) of the month's `total` unit-seconds.
        """
        if not 0 <= since <= until <= total:
            raise ValueError(f"[{since}, {until}) is not within {total}")
        if self.model == "volume":
            return (until - since) * (self.nano_per_hour - self.price_at(total))
        if self.model == "package":
            return self._packed(until) - self._packed(since)
        return self._graduated(until) - self._graduated(since)

    def price_at(self, used: int) -> int:
        """Return the price per hour after this much usage; a tier includes its start."""
        at = bisect_right(self.starts, used)
        return self.prices[at - 1] if at else self.nano_per_hour

    def capped(self, most: int) -> "TieredPrice | None":
        """Return the price capped at `most`; None if no tier is cheaper."""
        if self.model == "package":
            dear = self.prices[0] * HOUR > self.starts[0] * most
            return None if dear else replace(self, nano_per_hour=min(most, self.nano_per_hour))
        prices = tuple(min(price, most) for price in self.prices)
        return replace(self, nano_per_hour=min(most, self.nano_per_hour), prices=prices)

    def _graduated(self, used: int) -> int:
        boundaries = [*self.starts, used]
        return sum(
            (min(end, used) - start) * (self.nano_per_hour - price)
            for start, end, price in zip(boundaries, boundaries[1:], self.prices, strict=False)
            if start < used
        )

    def _packed(self, used: int) -> int:
        """Return the savings from packages at this usage.

        Whole packages cost their price; the rest costs its hours, but at most one more package.
        """
        size, package = self.starts[0], self.prices[0] * HOUR
        whole, rest = divmod(used, size)
        return whole * (size * self.nano_per_hour - package) + max(0, rest * self.nano_per_hour - package)


def tier_starts(tiers: Sequence[tuple[int, int | None]]) -> tuple[int, ...]:
    """Return the starts of tiers that were given with ends.

    Raises ValueError for gaps or overlaps.
    """
    if not tiers or tiers[0][0] != 0:
        raise ValueError("the first tier begins at 0")
    for (start, end), (then, _) in pairwise(tiers):
        if then <= start:
            raise ValueError(f"a tier from {then} does not follow one from {start}: they are in order, none twice")
        if end is not None and end != then:
            what = "overlap" if end > then else "leave a gap"
            raise ValueError(f"the tiers until {end} and from {then} {what}: each begins where the one before ends")
    if tiers[-1][1] is not None:
        raise ValueError("the last tier has no end")
    return tuple(start for start, _ in tiers[1:])
