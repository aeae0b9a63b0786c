"""Quotas in the units people read: units, unit hours, money per hour; kept as exact integers."""

from datetime import datetime
from decimal import Decimal

# kind: (name, what one of them is in the quota's own count, its unit)
SHOWN: dict[str, tuple[str, int, str]] = {
    "units": ("Units at once", 1000, "units"),
    "gpu_seconds": ("Unit hours a month", 3_600_000, "unit hours"),
    "storage": ("Volumes", 1, "GiB"),
    "burn": ("Money an hour", 1_000_000_000, "per hour"),
}


def window_of(now: datetime) -> datetime:
    """Return the beginning of the calendar month (UTC) that GPU-hours are counted in."""
    return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def kept(kind: str, shown: Decimal) -> int:
    """Return the count that stands for a figure people gave, exactly; raise ValueError where none does."""
    count = shown * SHOWN[kind][1]
    if count != count.to_integral_value():
        raise ValueError(f"{SHOWN[kind][0]} are counted in whole {SHOWN[kind][2]}; {shown} is not.")
    return int(count)


def shown(kind: str, count: int) -> Decimal:
    """Return a count as people read it."""
    figure = (Decimal(count) / SHOWN[kind][1]).quantize(Decimal("0.001"))
    return figure.quantize(Decimal(1)) if figure == figure.to_integral_value() else figure.normalize()


def written(kind: str, count: int) -> str:
    """Write a count for a table: thousands apart, and no decimals from a hundred on, where nobody reads them."""
    figure = shown(kind, count)
    return f"{int(figure) if figure >= 100 else figure:,}"
