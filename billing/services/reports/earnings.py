"""Fleet-wide revenue by currency, in exact integers. Requires staff scope."""

from datetime import datetime
from typing import NamedTuple

from ports.postgres.sql_statements import query_rows


class _ActiveLeasePrice(NamedTuple):
    """What an active lease earns, or all together; 10⁻⁹ currency units."""

    lease: str  # empty for all together
    currency: str
    per_hour: int
    per_slice_hour: int


def hourly_revenue(*, now: datetime) -> dict[str, int]:
    """Return the hourly revenue of all active leases, in 10⁻⁹ currency units."""
    return {each.currency: each.per_hour for each in _active_lease_prices(None, now)}


def hourly_prices_of(leases: list[str], *, now: datetime) -> dict[str, tuple[int, str]]:
    """Return (10⁻⁹ units per slice-hour, currency) of each active lease named."""
    return {each.lease: (each.per_slice_hour, each.currency) for each in _active_lease_prices(leases, now)}


def revenue_over(*spans: tuple[datetime, datetime]) -> list[dict[str, int]]:
    """Return the exact revenue of active time in each span, by currency; one query.

    Amounts are over 3600·10⁹.
    """
    firsts, lasts = ([moment.replace(microsecond=0) for moment in ends] for ends in zip(*spans, strict=True))
    earned: list[dict[str, int]] = [{} for _ in spans]
    values = {"firsts": firsts, "lasts": lasts, "oldest": min(firsts), "newest": max(lasts)}
    for n, currency, exact in query_rows("billing/reports/revenue", **values):
        earned[n - 1][currency] = int(exact)
    return earned


def _active_lease_prices(leases: list[str] | None, now: datetime) -> list[_ActiveLeasePrice]:
    return [
        _ActiveLeasePrice(*row) for row in query_rows("billing/reports/active_lease_prices", leases=leases, now=now)
    ]
