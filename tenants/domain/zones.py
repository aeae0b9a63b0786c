"""Time zones a tenant may live in: those of a place, whose law says when its months begin."""

from functools import cache
from zoneinfo import available_timezones

UTC = "UTC"
AREAS = frozenset(
    (
        "Africa",
        "America",
        "Antarctica",
        "Arctic",
        "Asia",
        "Atlantic",
        "Australia",
        "Europe",
        "Indian",
        "Pacific",
    )
)
# Old names of whole states and islands within an area; each is an alias of a city's zone.
NO_CITY = frozenset(
    f"Australia/{state}"
    for state in ("ACT", "LHI", "NSW", "North", "Queensland", "South", "Tasmania", "Victoria", "West")
)


@cache
def places() -> frozenset[str]:
    """Return every time zone a tenant may live in: read from many files, once."""
    cities = (name for name in available_timezones() if name.partition("/")[0] in AREAS)
    return frozenset({UTC, *cities}) - NO_CITY


def refusal(name: str) -> str:
    """Say why a tenant cannot live in this time zone; empty when it can."""
    if name in places():
        return ""
    if name in available_timezones():
        return f"{name[:60]} is the name of no city's clock; months are billed by the clock of a place."
    return f"{name[:60]} is no time zone."
