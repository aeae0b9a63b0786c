"""Minimum spend of a month: pro-rating by the second, and the shortfall."""

from billing.domain.money import half_up


def prorate_minimum(minor: int, *, seconds: int, of: int) -> int:
    """Return a month's minimum for part of its seconds, in minor units, rounded half up."""
    if not 0 <= seconds <= of:
        raise ValueError(f"{seconds} s are not within {of} s")
    return half_up(minor * seconds, of)


def minimum_shortfall(minimum: int, lines: int) -> int:
    """Return how far lines fall short of a minimum; never negative."""
    return max(0, minimum - lines)
