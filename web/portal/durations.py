"""Durations as people write them, such as 90 min or 8 h."""

import re
from datetime import timedelta

from django.utils.translation import gettext as _

DURATION_PART = re.compile(r"(\d{1,7})\s*(d|day|days|h|hour|hours|min|m|minute|minutes|s)?", re.ASCII)
COMMA_AFTER_UNIT = re.compile(r"(?<=[a-z])\s*,")
SECONDS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
MAX_PARSED_SECONDS = 10**10  # caps the number; the limit of a lease's duration refuses it


def parse_duration(text: str) -> int | None:
    """Parse a duration such as 8 h, 90 min or 1 d, 12 h.

    A bare number counts hours. A comma between digits is refused: it is a decimal point to some, a
    thousands separator to others.
    """
    rest, total, found = COMMA_AFTER_UNIT.sub(" ", text.strip().lower()), 0, False
    while rest:
        part = DURATION_PART.match(rest)
        if part is None or (part[2] is None and part[0] != text.strip()):  # 1 000 h, or 8 h 30
            return None
        unit = (part[2] or "h")[0]
        total, found, rest = total + int(part[1]) * SECONDS[unit], True, rest[part.end() :].lstrip()
    return min(total, MAX_PARSED_SECONDS) if found else None


def format_duration(length: timedelta) -> str:
    """Format a duration as the field accepts it."""
    minutes = int(length.total_seconds()) // 60
    hours, rest = divmod(minutes, 60)
    return (
        _("{hours} h {rest} min").format(hours=hours, rest=rest)
        if hours and rest
        else f"{hours} h"
        if hours
        else _("{minutes} min").format(minutes=minutes)
    )


def format_seconds(seconds: int) -> str:
    return format_duration(timedelta(seconds=seconds))
