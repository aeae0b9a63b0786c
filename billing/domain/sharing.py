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


class Spread:
    """Share a total among very many, one after the other, without remembering any.

    Each gets what all up to it come to, less what those before it got. It is less than one unit away from its part, and
    the last one brings the total.
    """

    def __init__(self, total: int, whole: int) -> None:
        self.total, self.whole = total, whole
        self._seen = self._given = 0

    def next(self, weight: int) -> int:
        """Return the share of the next one."""
        self._seen += weight
        upto = self.total * self._seen // self.whole if self.whole else 0
        share = upto - self._given
        self._given = upto
        return share

    @property
    def left(self) -> int:
        """What nobody has got yet: nothing, once all weights came."""
        return self.total - self._given
