"""What discounts take off lines: exact amounts over 3600·10⁹, in whole numbers of them, and never below nought."""

from collections.abc import Mapping
from typing import TypeVar

from billing.domain.money import EXACT_PER_UNIT
from billing.domain.sharing import shared

Key = TypeVar("Key")
WHOLE = 10_000  # hundredths of a per cent


def percent_off(num: int, percent_bp: int) -> int:
    """Return what so many hundredths of a per cent of an amount are, cut to a whole number of its smallest parts."""
    if not 0 <= percent_bp <= WHOLE:
        raise ValueError(f"a discount is of nought to {WHOLE} hundredths of a per cent, not {percent_bp}")
    return max(num, 0) * percent_bp // WHOLE


def amount_off(lines: Mapping[Key, int], minor: int, *, exponent: int) -> dict[Key, int]:
    """Return what each line gives to an amount off all of them, in minor units: as much as there is, at most.

    Lines give whole coins, in proportion to theirs, so that each is rounded as before and their sum is less by exactly
    the amount. Where whole coins are not enough, what is left over of them goes too, line by line.
    """
    if minor < 0:
        raise ValueError("an amount off is not less than nought")
    coin = EXACT_PER_UNIT // 10**exponent
    coins = {key: max(num, 0) // coin for key, num in lines.items()}
    if minor <= sum(coins.values()):
        return {key: many * coin for key, many in shared(minor, coins).items() if many}
    left, found = minor * coin, dict[Key, int]()
    for key in lines:
        found[key] = coins[key] * coin
        left -= found[key]
    for key, num in lines.items():
        more = min(max(num, 0) - found[key], left)
        found[key] += more
        left -= more
    return {key: num for key, num in found.items() if num}


def month_ahead(label: str, months: int) -> str:
    """Return the label of the month so many months after one: `2026-11` and 2 is `2027-01`."""
    year, month = divmod(int(label[:4]) * 12 + int(label[5:]) - 1 + months, 12)
    return f"{year:04}-{month + 1:02}"
