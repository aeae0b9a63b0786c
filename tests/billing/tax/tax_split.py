"""Tax split over lines by largest remainder, for comparison with SQL."""

from collections.abc import Iterable

from billing.domain.money import half_up
from billing.domain.tax import FULL_BP


def tax_of(net: int, rate_bp: int) -> int:
    """Return the tax on the whole amount of a category, rounded once."""
    return half_up(net * rate_bp, FULL_BP)


def split_tax(amounts: Iterable[int], rate_bp: int) -> list[int]:
    """Split a category's tax over its lines by the largest-remainder method.

    Each share is rounded down; the missing units go to the lines with the largest remainders, earlier
    lines first.
    """
    lines = list(amounts)
    cut = [minor * rate_bp % FULL_BP for minor in lines]
    parts = [minor * rate_bp // FULL_BP for minor in lines]
    missing = tax_of(sum(lines), rate_bp) - sum(parts)
    for at in sorted(range(len(lines)), key=lambda at: (-cut[at], at))[:missing]:
        parts[at] += 1
    return parts
