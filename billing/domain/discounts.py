"""Amounts that discounts take off invoice lines: exact, over 3600·10⁹, and never negative."""

from collections.abc import Mapping
from typing import TypeVar

from billing.domain.apportionment import apportion
from billing.domain.money import EXACT_PER_UNIT

Key = TypeVar("Key")
FULL_BP = 10_000  # hundredths of a per cent


def percent_discount(num: int, percent_bp: int) -> int:
    """Return a percentage (in hundredths of a per cent) of an exact amount, rounded down."""
    if not 0 <= percent_bp <= FULL_BP:
        raise ValueError(f"a discount is of nought to {FULL_BP} hundredths of a per cent, not {percent_bp}")
    return max(num, 0) * percent_bp // FULL_BP


def amount_discount(lines: Mapping[Key, int], minor: int, *, exponent: int) -> dict[Key, int]:
    """Return how much of a fixed discount, in minor units, each line bears.

    Never more than the lines come to. Lines bear whole minor units in proportion to theirs, so each
    rounds as before and their sum is lower by exactly the discount. Where whole minor units are not
    enough, their remaining fractions are used too, line by line.
    """
    if minor < 0:
        raise ValueError("an amount off is not less than nought")
    minor_unit = EXACT_PER_UNIT // 10**exponent
    whole_minors = {key: max(num, 0) // minor_unit for key, num in lines.items()}
    if minor <= sum(whole_minors.values()):
        return {key: many * minor_unit for key, many in apportion(minor, whole_minors).items() if many}
    left, found = minor * minor_unit, dict[Key, int]()
    for key in lines:
        found[key] = whole_minors[key] * minor_unit
        left -= found[key]
    for key, num in lines.items():
        more = min(max(num, 0) - found[key], left)
        found[key] += more
        left -= more
    return {key: num for key, num in found.items() if num}


def add_months(label: str, months: int) -> str:
    """Return the label of the month this many months later: `2026-11` and 2 is `2027-01`."""
    year, month = divmod(int(label[:4]) * 12 + int(label[5:]) - 1 + months, 12)
    return f"{year:04}-{month + 1:02}"
