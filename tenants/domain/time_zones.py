"""Time zones that a tenant may choose: IANA zones named after a city.

The law of a place defines when its months begin.
"""

from functools import cache
from zoneinfo import available_timezones

UTC = "UTC"
AREAS = frozenset(
    ("Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")
)
# Old names of states and islands within an area; each is an alias of a city's zone.
STATE_ZONES = frozenset(
    f"Australia/{state}"
    for state in ("ACT", "LHI", "NSW", "North", "Queensland", "South", "Tasmania", "Victoria", "West")
)


@cache
def permitted_zones() -> frozenset[str]:
    """Return every permitted time zone; read from many files, once."""
    cities = (name for name in available_timezones() if name.partition("/")[0] in AREAS)
    return frozenset({UTC, *cities}) - STATE_ZONES


def time_zone_error(name: str) -> str:
    """Return why a time zone is not permitted; empty if it is."""
    if name in permitted_zones():
        return ""
    if name in available_timezones():
        return f"{name[:60]} is not a region's time zone, which billing needs."
    return f"{name[:60]} is not a time zone."
