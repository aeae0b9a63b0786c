"""Sharing an amount that was rounded once among what made it, so that the shares come to it exactly.

Amounts are integers of any unit. Weights are integers too, such as exact amounts over 3600·10⁹; some may be negative.
"""

from collections.abc import Mapping
from typing import TypeVar

Key = TypeVar("Key")


def shared(total: int, weights: Mapping[Key, int]) -> dict[Key, int]:
    """Share a total in proportion to weights: everybody gets the whole part, the largest remainders one more.

    Of equal remainders the earlier in `weights` comes first. Where weights come to nothing the first takes all.
    """
    whole = sum(weights.values())
    if not weights:
        return {}
    if not whole:
        return {key: total if n == 0 else 0 for n, key in enumerate(weights)}
    # Dividing by what is below nothing turns all signs, and no share.
    parts = {key: divmod(total * weight, whole) for key, weight in weights.items()}
    found = {key: part for key, (part, _) in parts.items()}
    left = total - sum(found.values())
    by_remainder = sorted(parts, key=lambda key: -abs(parts[key][1]))
    for key in by_remainder[:left]:
        found[key] += 1
    return found


class Cut:
    """Cut what was rounded once into what made it, one piece after the other, without remembering any.

    Pieces are fractions over `unit` and come out as integers, each less than one away from what it is; the first also
    bears what the whole was rounded by. All of them come to the whole, whatever their signs.
    """

    def __init__(self, whole: int, *, exact: int, unit: int) -> None:
        self.unit, self._seen = unit, 0
        self._rounded = whole - exact // unit

    def next(self, exact: int) -> int:
        """Return the next piece."""
        before, self._seen = self._seen // self.unit, self._seen + exact
        piece = self._seen // self.unit - before + self._rounded
        self._rounded = 0
        return piece
