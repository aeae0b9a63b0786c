"""Apportionment of a rounded amount, so that the shares add up to it exactly.

Amounts are integers of any unit. Weights are integers too, such as exact amounts over 3600·10⁹; some may
be negative.
"""

from collections.abc import Mapping
from typing import TypeVar

Key = TypeVar("Key")


def apportion(total: int, weights: Mapping[Key, int]) -> dict[Key, int]:
    """Split a total in proportion to weights by the largest-remainder method.

    Of equal remainders the earlier in `weights` comes first. If the weights add up to zero, the first
    takes everything.
    """
    whole = sum(weights.values())
    if not weights:
        return {}
    if not whole:
        return {key: total if n == 0 else 0 for n, key in enumerate(weights)}
    # A negative divisor flips the signs of both parts, so shares stay correct.
    parts = {key: divmod(total * weight, whole) for key, weight in weights.items()}
    found = {key: part for key, (part, _) in parts.items()}
    left = total - sum(found.values())
    by_remainder = sorted(parts, key=lambda key: -abs(parts[key][1]))
    for key in by_remainder[:left]:
        found[key] += 1
    return found


class RunningApportionment:
    """Splits a rounded amount into consecutive pieces without keeping them.

    Pieces are fractions over `unit` and come out as integers, each less than one away from its exact
    value; the first that is not zero also carries the rounding of the whole. Together they equal the
    whole, whatever their signs.
    """

    def __init__(self, whole: int, *, exact: int, unit: int) -> None:
        self.unit, self._seen = unit, 0
        self._rounded = whole - exact // unit

    def next(self, exact: int) -> int:
        """Return the next piece."""
        before, self._seen = self._seen // self.unit, self._seen + exact
        piece = self._seen // self.unit - before
        if exact:
            piece, self._rounded = piece + self._rounded, 0
        return piece
