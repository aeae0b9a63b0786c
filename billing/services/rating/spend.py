"""Money spent and being spent, to the second.

Call in the tenant's RLS scope. Everything is the sum of seconds × quantity × price: rated charges,
and the same computation for usage that is not rated yet. Amounts are exact integers over 3600·10⁹,
rounded only for display. Seconds are those of slices; amounts include volumes, whose GiB-seconds
are not among the seconds.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db import connection

from billing.domain.money import EXACT_PER_UNIT, exponent_of, to_minor
from billing.domain.periods import Period, midnight, month_of
from ports.postgres.sql_statements import load_sql, query_rows
from tenants.models import Tenant

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
GROUPS = ("offering", "project", "lease", "user", "tag")
MAX_TAGS = 20


@dataclass(frozen=True, slots=True)
class LeaseCost:
    """Cost of one lease so far."""

    currency: str
    seconds: int
    unit_seconds: int
    exact_num: int
    until: datetime | None  # its last billable second, as far as known

    @classmethod
    def nothing(cls, currency: str) -> "LeaseCost":
        return cls(currency, 0, 0, 0, None)

    @property
    def minor(self) -> int:
        return to_minor(self.exact_num, exponent_of(self.currency))


@dataclass(frozen=True, slots=True)
class DailyUsage:
    """Usage of one offering, project or lease on one day."""

    day: datetime  # its first moment, UTC
    key: str
    unit_seconds: int
    exact_num: int


@dataclass(frozen=True, slots=True)
class SpendLine:
    """A project's use of an offering at one price: an invoice line, unrounded."""

    since: datetime  # the boundary at which its interval begins
    project: str
    offering: str
    price_version: int
    unit_seconds: int
    exact_num: int
    part: str = ""  # requesting user or tag value, if lines are split by it


def spend_between(tenant: Tenant, since: datetime, until: datetime, projects: Iterable[str] | None = None) -> int:
    """Return the spend of a tenant's projects in [since, until), in minor units.

    All projects unless named. Every line is rounded as on the invoice, so the sum equals the invoice's.
    """
    values = {"scale": 10 ** exponent_of(tenant.currency), "per_unit": EXACT_PER_UNIT}
    return int(_query_usage("billing/rating/usage_total", since=since, until=until, projects=projects, **values)[0][0])


def spend_by_month_end(tenant: Tenant, *, now: datetime, projects: Iterable[str] | None = None) -> int:
    """Return the month's spend if running leases and volumes go on, in minor units.

    Leases go on until their own end or the month's, at known prices; none begins. This is the forecast of
    every page and alert.
    """
    month = month_of(tenant.time_zone, now)
    return spend_between(tenant, month.start, month.end, projects)


def spend_by_project(
    month: Period, paths: Mapping[str, Sequence[str]], currency: str, *, until: datetime
) -> dict[str, int]:
    """Return what each project spent in a month until a moment.

    With the projects below it; in minor units.

    `paths` are the paths of all projects. The root's spend is that of `spend_between`.
    """
    found: dict[str, int] = defaultdict(int)
    for line in spend_lines([month.start, month.end], until=until):
        for node in paths[line.project]:
            found[node] += to_minor(line.exact_num, exponent_of(currency))
    return found


def spend_lines(
    boundaries: Sequence[datetime],
    *,
    until: datetime,
    projects: Iterable[str] | None = None,
    cut: str = "",
    tag: str = "",
) -> list[SpendLine]:
    """Return the lines between consecutive boundaries, up to `until`; one query.

    Boundaries are whole seconds. A line is what the invoice will round once; it is split by the requesting
    user (`user`) or by a lease tag (`tag`, and which).
    """
    begins, ends = list(boundaries[:-1]), list(boundaries[1:])
    rows = _query_usage(
        "billing/rating/usage_lines",
        since=begins[0],
        until=min(until, ends[-1]),
        projects=projects,
        begins=begins,
        ends=ends,
        cut=cut,
        tag=tag,
    )
    return [
        SpendLine(begins[number - 1], project, offering, version, unit_seconds, int(exact), part)
        for number, project, offering, version, part, unit_seconds, exact in rows
    ]


def hourly_spend(projects: Iterable[str] | None, tenant: Tenant, *, now: datetime) -> int:
    """Return the hourly cost of active leases, in 10⁻⁹ currency units."""
    return sum(hourly_spend_by_project(projects, tenant, now=now).values())


def hourly_spend_by_project(projects: Iterable[str] | None, tenant: Tenant, *, now: datetime) -> dict[str, int]:
    """Return the same of each project itself, without those below it."""
    values = {
        "projects": None if projects is None else list(projects),
        "tenant": tenant.pk,
        "currency": tenant.currency,
    }
    return dict(query_rows("billing/rating/active_cost", now=now, **values))


def costs_of(leases: Sequence[str], *, now: datetime, since: datetime = EPOCH) -> dict[str, LeaseCost]:
    """Return each lease's cost so far, in one query; leases without cost are omitted.

    With `since` only what was used from then on.
    """
    rows = _query_usage("billing/rating/usage_by_lease", since=since, until=now, leases=leases)
    return {
        lease: LeaseCost(currency, seconds, unit_seconds, int(exact), until.astimezone(UTC))
        for lease, currency, seconds, unit_seconds, exact, until in rows
    }


def daily_usage(
    tenant: Tenant,
    since: datetime,
    until: datetime,
    *,
    group: str,
    tag: str = "",
    projects: Iterable[str] | None = None,
) -> list[DailyUsage]:
    """Return the usage of every local day, by offering, project, lease, user or tag.

    The days are those of [since, until).
    """
    if group not in GROUPS:
        raise ValueError(f"usage can be grouped by {', '.join(GROUPS)}, not by {group!r}")
    begins, ends = local_days(tenant.time_zone, since, until)
    rows = _query_usage(
        "billing/rating/usage_by_day",
        since=since,
        until=until,
        projects=projects,
        begins=begins,
        ends=ends,
        group=group,
        tag=tag,
    )
    return [DailyUsage(begins[number - 1], key, unit_seconds, int(exact)) for number, key, unit_seconds, exact in rows]


def tag_names(projects: Iterable[str] | None) -> list[str]:
    """Return the tag names on leases of these projects, most used first; one query.

    All projects unless named.
    """
    named = None if projects is None else list(projects)
    return [name for (name,) in query_rows("billing/rating/tag_names", projects=named, most=MAX_TAGS)]


def local_days(time_zone: str, since: datetime, until: datetime) -> tuple[list[datetime], list[datetime]]:
    """Return the beginnings and ends of the local days that overlap [since, until)."""
    zone = ZoneInfo(time_zone)
    day = since.astimezone(zone).date()
    boundaries = [midnight(day, zone)]
    while boundaries[-1] < until:
        day += timedelta(days=1)
        boundaries.append(midnight(day, zone))
    return boundaries[:-1], boundaries[1:]


def _query_usage(
    question: str,
    *,
    since: datetime,
    until: datetime,
    projects: Iterable[str] | None = None,
    leases: Sequence[str] | None = None,
    **more: Any,
) -> list[tuple[Any, ...]]:
    values = {
        "since": since.replace(microsecond=0),
        "until": until.replace(microsecond=0),
        "projects": None if projects is None else list(projects),
        "leases": None if leases is None else list(leases),
        **more,
    }
    with connection.cursor() as cursor:
        cursor.execute(load_sql("billing/rating/usage_costs") + load_sql(question), values)
        return list(cursor.fetchall())
