"""The part of an invoice that is not collected while disputed."""

from collections import Counter
from collections.abc import Iterable


def undisputed_due(due: int, open_: Iterable[int]) -> int:
    """Return the part of a due amount that no open dispute covers."""
    return max(due - sum(open_), 0)


def answered_amount_on_hold(answered: Iterable[tuple[int, int, int]]) -> int:
    """Return the amount that is not collected yet because its dispute was just answered.

    Each entry is (line, disputed and not credited, what is left of the line). A line that was disputed
    several times counts with no more than is left of it.
    """
    waits, most = Counter[int](), dict[int, int]()
    for line, kept, left in answered:
        waits[line] += max(kept, 0)
        most[line] = left
    return sum(min(amount, most[line]) for line, amount in waits.items())
