"""What a replay comes to, read from the database alone: nothing here was counted by the driver."""

import hashlib
from dataclasses import dataclass
from typing import Any

from django.db import connection

from tenants.services.walls import as_sweep

# A lease waits from its first queued step to its first placement. Percentiles are by rank, without
# interpolation, over every lease that was placed.
WAITS = """
WITH steps AS (
  SELECT lease_id, min(at) FILTER (WHERE after = 'queued') AS queued,
         min(at) FILTER (WHERE after = 'provisioning') AS placed
    FROM broker_transition GROUP BY lease_id
), waits AS (
  SELECT extract(epoch FROM placed - queued)::bigint AS s FROM steps WHERE placed IS NOT NULL
)
SELECT (SELECT count(*) FROM broker_lease), count(*), count(*) FILTER (WHERE s > 0),
       coalesce(percentile_disc(0.95) WITHIN GROUP (ORDER BY s), 0),
       coalesce(percentile_disc(0.5) WITHIN GROUP (ORDER BY s) FILTER (WHERE s > 0), 0),
       coalesce(percentile_disc(0.95) WITHIN GROUP (ORDER BY s) FILTER (WHERE s > 0), 0), coalesce(max(s), 0)
  FROM waits
"""
# How those fared who asked for a slice, for one whole card, for several together.
BY_SIZE = """
WITH steps AS (
  SELECT lease_id, min(at) FILTER (WHERE after = 'queued') AS queued,
         min(at) FILTER (WHERE after = 'provisioning') AS placed
    FROM broker_transition GROUP BY lease_id
), waits AS (
  SELECT CASE WHEN l.quantity > 1 THEN 'gangs' WHEN o.isolation = 'device' THEN 'cards' ELSE 'slices' END AS size,
         extract(epoch FROM placed - queued)::bigint AS s
    FROM steps JOIN broker_lease l ON l.id = lease_id JOIN broker_offering o ON o.id = l.offering_id
)
SELECT size, count(*), count(*) FILTER (WHERE s = 0), coalesce(sum(s), 0)::bigint FROM waits GROUP BY size
"""
# How full the fleet was while somebody waited, and until the last request came: between two changes nothing changes.
FULLNESS = """
WITH steps AS (
  SELECT lease_id, min(at) FILTER (WHERE after = 'queued') AS queued,
         min(at) FILTER (WHERE after = 'provisioning') AS placed
    FROM broker_transition GROUP BY lease_id
), changes AS (
  SELECT held_at AS at, upper(placement) - lower(placement) AS units, 0 AS waiting FROM broker_allocation
  UNION ALL
  SELECT released_at, lower(placement) - upper(placement), 0 FROM broker_allocation WHERE released_at IS NOT NULL
  UNION ALL SELECT queued, 0, 1 FROM steps WHERE placed > queued
  UNION ALL SELECT placed, 0, -1 FROM steps WHERE placed > queued
), line AS (
  SELECT at, sum(sum(units)) OVER (ORDER BY at) AS units, sum(sum(waiting)) OVER (ORDER BY at) AS waiting,
         extract(epoch FROM lead(at) OVER (ORDER BY at) - at)::bigint AS s
    FROM changes GROUP BY at
)
SELECT coalesce(sum(units * s) FILTER (WHERE waiting > 0), 0)::bigint,
       coalesce(sum(s) FILTER (WHERE waiting > 0), 0)::bigint,
       coalesce(sum(units * s) FILTER (WHERE at < last), 0)::bigint,
       coalesce(extract(epoch FROM max(last) - %(first)s::timestamptz), 0)::bigint
  FROM line, (SELECT max(created_at) AS last FROM broker_lease) asked
"""
REVENUE = """
SELECT t.name, o.label, sum(l.unit_seconds)::bigint, sum(l.minor)::bigint
  FROM billing_invoiceline l JOIN billing_invoice i ON i.id = l.invoice_id
  JOIN tenants_tenant t ON t.id = l.tenant_id JOIN broker_offering o ON o.id = l.offering_id
 WHERE i.status = 'finalized' GROUP BY 1, 2 ORDER BY 1, 2
"""
MONTHS = """
SELECT p.label, count(*), sum(i.total - i.tax)::bigint, sum(i.total)::bigint
  FROM billing_invoice i JOIN billing_billingperiod p ON p.id = i.period_id
 WHERE i.status = 'finalized' GROUP BY 1 ORDER BY 1
"""
NOT_FINAL = """
SELECT DISTINCT coalesce(nullif(p.held_up, ''), p.label || ' was not closed')
  FROM billing_invoice i JOIN billing_billingperiod p ON p.id = i.period_id WHERE i.status = 'draft' ORDER BY 1
"""
# Cards in use at the end of every day of the span, for the chart.
DAILY = """
SELECT d::date::text, coalesce(sum(upper(a.placement) - lower(a.placement)), 0)::bigint
  FROM generate_series(%(first)s::timestamptz, %(last)s::timestamptz, '1 day') d
  LEFT JOIN broker_allocation a ON a.held_at <= d AND (a.released_at IS NULL OR a.released_at > d)
 GROUP BY d ORDER BY d
"""
# Everything that matters, in an order that does not depend on how it was stored.
FINGERPRINTS = (
    """SELECT lease_id, seq, at, before, after, reason, quantity, offering_id, generation
         FROM broker_transition ORDER BY lease_id, seq""",
    """SELECT lease_id, seq, s, e, unit_seconds, exact_num FROM billing_ratedcharge ORDER BY lease_id, seq, s""",
    """SELECT a.lease_id, g.uuid, a.placement, a.held_at, a.released_at
         FROM broker_allocation a JOIN broker_gpu g ON g.id = a.gpu_id ORDER BY 1, 2, 3, 4""",
    """SELECT i.number, i.tenant_id, i.total, l.n, l.unit_seconds, l.exact_num, l.minor
         FROM billing_invoice i LEFT JOIN billing_invoiceline l ON l.invoice_id = i.id ORDER BY 1, 2, 4""",
)


@dataclass(frozen=True)
class Waits:
    """How leases fared in the queue; seconds. `queued_…` are of those that had to wait at all."""

    leases: int
    accepted: int
    queued: int
    p95_s: int
    queued_p50_s: int
    queued_p95_s: int
    longest_s: int


@dataclass(frozen=True)
class Size:
    """How requests of one size fared: how many were placed, how many at once, how long all waited together."""

    placed: int = 0
    at_once: int = 0
    waited_s: int = 0


@dataclass(frozen=True)
class Fullness:
    """Slice-seconds that were held, and in how many seconds: while somebody waited, and until the last request."""

    held_while_waiting: int
    waiting_s: int
    held_until_last: int
    until_last_s: int


def _rows(sql: str, **parameters: Any) -> list[tuple[Any, ...]]:
    with as_sweep(), connection.cursor() as cursor:
        cursor.execute(sql, parameters or None)
        return list(cursor.fetchall())


def waits() -> Waits:
    return Waits(*(int(value) for value in _rows(WAITS)[0]))


def by_size() -> dict[str, Size]:
    """Return how slices, single whole cards and gangs fared."""
    found = {size: Size(*numbers) for size, *numbers in _rows(BY_SIZE)}
    return {size: found.get(size, Size()) for size in ("slices", "cards", "gangs")}


def fullness(first: Any) -> Fullness:
    return Fullness(*(int(value) for value in _rows(FULLNESS, first=first)[0]))


def revenue() -> list[dict[str, Any]]:
    """Return what every tenant was invoiced for every offering; unit-seconds and minor units."""
    names = ("tenant", "offering", "unit_seconds", "minor")
    return [dict(zip(names, row, strict=True)) for row in _rows(REVENUE)]


def months() -> list[dict[str, Any]]:
    """Return the closed months: how many invoices, and their sum without tax and with it, in minor units."""
    names = ("month", "invoices", "net_minor", "minor")
    return [dict(zip(names, row, strict=True)) for row in _rows(MONTHS)]


def not_final() -> list[str]:
    """Return why months could not close; nothing for a replay that came to its end."""
    return [why for (why,) in _rows(NOT_FINAL)]


def daily_use(first: Any, last: Any) -> list[tuple[str, int]]:
    """Return the memory slices held at the end of every day."""
    return [(day, int(held)) for day, held in _rows(DAILY, first=first, last=last)]


def digest() -> str:
    """Return one hash over every transition, allocation, charge and invoice line."""
    fingerprint = hashlib.sha256()
    for sql in FINGERPRINTS:
        for row in _rows(sql):
            fingerprint.update("|".join(str(value) for value in row).encode() + b"\n")
        fingerprint.update(b"--\n")
    return fingerprint.hexdigest()
