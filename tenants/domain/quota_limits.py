"""Conversion of quotas between stored integers and displayed units.

Units are compute slices, slice-hours, GiB and money per hour.
"""

from decimal import Decimal

# kind: (name, stored count per displayed unit, displayed unit)
QUOTA_UNITS: dict[str, tuple[str, int, str]] = {
    "units": ("Concurrent units", 1000, "units"),
    "gpu_seconds": ("Unit-hours per month", 3_600_000, "unit hours"),
    "storage": ("Volumes", 1, "GiB"),
    "burn": ("Spend rate limit", 1_000_000_000, "per hour"),
}


def to_stored(kind: str, shown: Decimal) -> int:
    """Return the stored count of a displayed figure.

    Raises ValueError if it cannot be represented exactly.
    """
    count = shown * QUOTA_UNITS[kind][1]
    if count != count.to_integral_value():
        raise ValueError(f"{QUOTA_UNITS[kind][0]} are counted in whole {QUOTA_UNITS[kind][2]}; {shown} is not.")
    return int(count)


def to_displayed(kind: str, count: int) -> Decimal:
    """Return a stored count in displayed units."""
    figure = (Decimal(count) / QUOTA_UNITS[kind][1]).quantize(Decimal("0.001"))
    return figure.quantize(Decimal(1)) if figure == figure.to_integral_value() else figure.normalize()


def format_count(kind: str, count: int) -> str:
    """Format a count for a table: with thousands separators, and without decimals from 100 on."""
    figure = to_displayed(kind, count)
    return f"{int(figure) if figure >= 100 else figure:,}"
