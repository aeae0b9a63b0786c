"""Unpriced usage: an error for operators to fix; it is never charged at zero."""

from dataclasses import dataclass
from datetime import datetime

from billing.models import PriceVersion
from ports.postgres.sql_statements import query_rows


@dataclass(frozen=True, slots=True)
class UnpricedInterval:
    """An interval of a lease or volume whose unit-seconds no list price covers."""

    tenant: str
    tenant_name: str
    lease: str
    seq: int
    offering: str
    label: str
    currency: str
    since: datetime
    until: datetime  # now, if it still runs
    unit_seconds: int


def unpriced_usage(*, now: datetime) -> list[UnpricedInterval]:
    """Return the unpriced usage of all tenants, in one query. Requires staff scope."""
    leases = [UnpricedInterval(*row) for row in query_rows("billing/rating/unpriced_leases", now=now)]
    return leases + unpriced_storage(now=now)


def unpriced_storage(*, now: datetime, tenant: str | None = None) -> list[UnpricedInterval]:
    """Return unpriced volume usage, of all tenants or one.

    Usage before storage was first sold is not included.
    """
    since = PriceVersion.objects.storage_sold_since()
    if since is None:
        return []
    rows = query_rows("billing/rating/unpriced_volumes", now=now, sold_since=since, tenant=tenant)
    return [UnpricedInterval(*row) for row in rows]
