"""Seconds that were used and have no price: an error for operators to mend, never seconds for nothing."""

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from billing.services.statements import statement
from billing.services.storage.sale import sold_since


@dataclass(frozen=True, slots=True)
class Unpriced:
    """A stretch of a lease's or a volume's life with unit-seconds that no version of the list covers."""

    tenant: str
    tenant_name: str
    lease: str
    seq: int
    offering: str
    label: str
    currency: str
    since: datetime
    until: datetime  # this moment, where it still runs
    unit_seconds: int


def unpriced(*, now: datetime) -> list[Unpriced]:
    """Return what cannot be charged, of all tenants, in one query. Must run as staff."""
    with connection.cursor() as cursor:
        cursor.execute(statement("unpriced"), {"now": now})
        leases = [Unpriced(*row) for row in cursor.fetchall()]
    return leases + of_storage(now=now)


def of_storage(*, now: datetime, tenant: str | None = None) -> list[Unpriced]:
    """Return what of volumes cannot be charged, of all tenants or of one; nothing before storage is sold at all."""
    since = sold_since()
    if since is None:
        return []
    with connection.cursor() as cursor:
        cursor.execute(statement("storage_gaps"), {"now": now, "sold_since": since, "tenant": tenant})
        return [Unpriced(*row) for row in cursor.fetchall()]
