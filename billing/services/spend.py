"""What was spent, and what is being spent, to this very second. Runs behind a tenant's wall.

Everything is the sum of seconds × quantity × price: charges where rating has been, the same reckoning where it
has not yet. Amounts are exact integers over 3600·10⁹; only who shows them rounds. Seconds are those of slices; what
volumes cost is in the amounts, and their GiB-seconds are not among the seconds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db import connection

from billing.domain.money import EXACT_PER_UNIT, exponent_of, to_minor
from billing.domain.periods import midnight
from billing.services.statements import statement
from tenants.models import Tenant

# By what usage can be told, and where that stands. Who asked and tags stand on the lease, and are its tenant's own.
ON_LEASE = "coalesce((SELECT {} FROM broker_lease l WHERE l.id = m.lease_id), {})"
ON_VOLUME = "(SELECT v.requested_by FROM broker_volume v WHERE v.id = m.lease_id), ''"
CUTS = {
    "user": ON_LEASE.format("l.requested_by", ON_VOLUME),
    "tag": ON_LEASE.format("l.tags ->> %(tag)s", "''"),
}
GROUPS = {"offering": "m.offering_id", "project": "m.project_id", "lease": "m.lease_id", **CUTS}
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS = "extract(epoch FROM e - s)::bigint"
# A line of the invoice is a project's use of one price version, which is of one offering. What was given back is
# taken off it, and never more than was charged.
TOTAL = f"""
SELECT coalesce(sum(div(2 * exact * %(scale)s + %(per_unit)s, 2 * %(per_unit)s::numeric)), 0)::bigint
  FROM (SELECT sum({SECONDS} * quantity * nano) AS exact FROM mine GROUP BY project_id, version) line
"""
BY_LEASE = f"""
SELECT m.lease_id, t.currency, sum({SECONDS} * sign(quantity))::bigint, sum({SECONDS} * quantity)::bigint,
       sum({SECONDS} * quantity * nano)::numeric(38), max(e)
  FROM mine m JOIN tenants_tenant t ON t.id = m.tenant_id GROUP BY m.lease_id, t.currency
"""
# Days come as their borders in the tenant's zone, so that a day of 23 or 25 hours is one day.
BY_DAY = """
SELECT d.number, {key}, coalesce(sum(extract(epoch FROM least(m.e, d.e) - greatest(m.s, d.s))::bigint * m.quantity)
                FILTER (WHERE m.meter = 'slice_seconds'), 0)::bigint,
       sum(extract(epoch FROM least(m.e, d.e) - greatest(m.s, d.s))::bigint * m.quantity * m.nano)::numeric(38)
  FROM mine m
  JOIN unnest(%(begins)s::timestamptz[], %(ends)s::timestamptz[]) WITH ORDINALITY AS d(s, e, number)
    ON m.s < d.e AND m.e > d.s
 GROUP BY 1, 2 ORDER BY 1, 2
"""
LINES = """
SELECT d.number, m.project_id, m.offering_id, m.version, {cut},
       coalesce(sum(extract(epoch FROM least(m.e, d.e) - greatest(m.s, d.s))::bigint * m.quantity)
                FILTER (WHERE m.meter = 'slice_seconds'), 0)::bigint,
       sum(extract(epoch FROM least(m.e, d.e) - greatest(m.s, d.s))::bigint * m.quantity * m.nano)::numeric(38)
  FROM mine m
  JOIN unnest(%(begins)s::timestamptz[], %(ends)s::timestamptz[]) WITH ORDINALITY AS d(s, e, number)
    ON m.s < d.e AND m.e > d.s
 GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5
"""
MOST_TAGS = 20
TAGS = """
SELECT tag.name FROM broker_lease l CROSS JOIN LATERAL jsonb_object_keys(l.tags) AS tag (name)
 WHERE (%(projects)s::text[] IS NULL OR l.project_id = ANY(%(projects)s::text[])) AND l.tags <> '{}'
 GROUP BY tag.name ORDER BY count(*) DESC, tag.name LIMIT %(most)s
"""
BURNING = """
SELECT coalesce(sum(l.quantity * coalesce(q.nano_per_hour, v.nano_per_hour)), 0)::bigint
  FROM broker_lease l
  LEFT JOIN billing_quote q ON q.lease_id = l.id AND q.offering_id = l.offering_id
  LEFT JOIN billing_tenantprice v
    ON v.tenant_id = l.tenant_id AND v.offering_id = l.offering_id AND v.currency = %(currency)s
   AND v.valid @> %(now)s::timestamptz
 WHERE l.state = 'active' AND l.tenant_id = %(tenant)s
   AND (%(projects)s::text[] IS NULL OR l.project_id = ANY(%(projects)s::text[]))
"""
GOING_ON = (
    """
SELECT coalesce(sum(extract(epoch FROM least(l.ends_at, %(until)s) - %(now)s)::bigint
                    * l.quantity * coalesce(q.nano_per_hour, v.nano_per_hour)), 0)::numeric(38)
"""
    + BURNING[BURNING.index("  FROM") :]
    + " AND coalesce(l.ends_at > %(now)s, true)"
)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one lease has cost so far."""

    currency: str
    seconds: int
    unit_seconds: int
    exact_num: int
    until: datetime | None  # its last second that costs anything, as far as anybody knows

    @classmethod
    def nothing(cls, currency: str) -> "Cost":
        return cls(currency, 0, 0, 0, None)

    @property
    def minor(self) -> int:
        return to_minor(self.exact_num, exponent_of(self.currency))


@dataclass(frozen=True, slots=True)
class Used:
    """What one offering, project or lease used on one day."""

    day: datetime  # its first moment, UTC
    key: str
    unit_seconds: int
    exact_num: int


@dataclass(frozen=True, slots=True)
class Line:
    """What one project used of one offering at one price: a line of the invoice, before it is rounded."""

    since: datetime  # the border its stretch began at
    project: str
    offering: str
    price_version: int
    unit_seconds: int
    exact_num: int
    part: str = ""  # who asked for the leases, or the value of their tag, where a line is cut by it


def between(tenant: Tenant, since: datetime, until: datetime, projects: Iterable[str] | None = None) -> int:
    """Return what projects of the tenant (all, unless named) spent in [since, until), in minor units.

    Every line is rounded as the invoice rounds it, so that the sum is the invoice's to the cent.
    """
    asked = {"scale": 10 ** exponent_of(tenant.currency), "per_unit": EXACT_PER_UNIT}
    return int(_ask(TOTAL, since=since, until=until, projects=projects, **asked)[0][0])


def lines(
    borders: Sequence[datetime],
    *,
    until: datetime,
    projects: Iterable[str] | None = None,
    cut: str = "",
    tag: str = "",
) -> list[Line]:
    """Return the lines of every stretch from one border to the next, no further than `until`, in one query.

    Borders are whole seconds. A line is what the invoice will round once; it is cut by who asked for the leases
    (`user`) or by a tag of theirs (`tag`, and which).
    """
    begins, ends = list(borders[:-1]), list(borders[1:])
    rows = _ask(
        LINES.format(cut=CUTS.get(cut, "''")),
        since=begins[0],
        until=min(until, ends[-1]),
        projects=projects,
        begins=begins,
        ends=ends,
        tag=tag,
    )
    return [
        Line(begins[number - 1], project, offering, version, unit_seconds, int(exact), part)
        for number, project, offering, version, part, unit_seconds, exact in rows
    ]


def burning(projects: Iterable[str] | None, tenant: Tenant, *, now: datetime) -> int:
    """Return what is active now costs per hour, in 10⁻⁹ currency units."""
    asked: dict[str, Any] = {
        "currency": tenant.currency,
        "now": now,
        "tenant": tenant.pk,
        "projects": None if projects is None else list(projects),
    }
    with connection.cursor() as cursor:
        cursor.execute(BURNING, asked)
        return int(cursor.fetchone()[0])


def going_on(projects: Iterable[str] | None, tenant: Tenant, *, now: datetime, until: datetime) -> int:
    """Return what is active now comes to until a moment or its own end, at today's prices; over 3600·10⁹."""
    asked: dict[str, Any] = {
        "currency": tenant.currency,
        "now": now.replace(microsecond=0),
        "until": until,
        "tenant": tenant.pk,
        "projects": None if projects is None else list(projects),
    }
    with connection.cursor() as cursor:
        cursor.execute(GOING_ON, asked)
        return int(cursor.fetchone()[0])


def costs(leases: Sequence[str], *, now: datetime) -> dict[str, Cost]:
    """Return what each of these leases has cost until now, in one query; those that cost nothing are left out."""
    rows = _ask(BY_LEASE, since=BEGINNING, until=now, leases=leases)
    return {
        lease: Cost(currency, seconds, unit_seconds, int(exact), until.astimezone(UTC))
        for lease, currency, seconds, unit_seconds, exact, until in rows
    }


def by_day(
    tenant: Tenant,
    since: datetime,
    until: datetime,
    *,
    group: str,
    tag: str = "",
    projects: Iterable[str] | None = None,
) -> list[Used]:
    """Return what was used on every local day of [since, until), stacked by offering, project, lease, user or a tag."""
    if group not in GROUPS:
        raise ValueError(f"usage is grouped by {', '.join(GROUPS)}, not by {group!r}")
    begins, ends = days(tenant.time_zone, since, until)
    rows = _ask(
        BY_DAY.format(key=GROUPS[group]),
        since=since,
        until=until,
        projects=projects,
        begins=begins,
        ends=ends,
        tag=tag,
    )
    return [
        Used(begins[number - 1], key, unit_seconds, int(exact)) for number, key, unit_seconds, exact in rows
    ]


def tags(projects: Iterable[str] | None) -> list[str]:
    """Return the names of the tags on leases of these projects (all, unless named), the most used first; one query."""
    with connection.cursor() as cursor:
        cursor.execute(TAGS, {"projects": None if projects is None else list(projects), "most": MOST_TAGS})
        return [name for (name,) in cursor.fetchall()]


def days(time_zone: str, since: datetime, until: datetime) -> tuple[list[datetime], list[datetime]]:
    """Return where each local day that meets [since, until) begins and ends."""
    zone = ZoneInfo(time_zone)
    day = since.astimezone(zone).date()
    borders = [midnight(day, zone)]
    while borders[-1] < until:
        day += timedelta(days=1)
        borders.append(midnight(day, zone))
    return borders[:-1], borders[1:]


def _ask(
    question: str,
    *,
    since: datetime,
    until: datetime,
    projects: Iterable[str] | None = None,
    leases: Sequence[str] | None = None,
    **more: Any,
) -> list[tuple[Any, ...]]:
    asked = {
        "since": since.replace(microsecond=0),
        "until": until.replace(microsecond=0),
        "projects": None if projects is None else list(projects),
        "leases": None if leases is None else list(leases),
        **more,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement("used") + question, asked)
        return list(cursor.fetchall())
