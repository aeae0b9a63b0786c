"""The least of a month: pro-rated by the second, and what lines lack of it."""

from billing.domain.money import half_up


def prorated(minor: int, *, seconds: int, of: int) -> int:
    """Return the part of a month's minimum that is of so many of its seconds; halves up, in minor units."""
    if not 0 <= seconds <= of:
        raise ValueError(f"{seconds} s are no part of {of} s")
    return half_up(minor * seconds, of)


def lacking(minimum: int, lines: int) -> int:
    """Return what lines that come to so much lack of a minimum; never less than nought."""
    return max(0, minimum - lines)
