"""Billing months in the tenant's time zone, and the billing locks."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

from django.db import connection, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import Max
from django.db.models.functions import Upper

from billing.domain.periods import Period, month_of
from billing.models import BillingPeriod
from billing.models.periods import MAX_BLOCKED_REASON_LENGTH, OPEN
from ports.postgres.sql_statements import query_rows
from tenants.models import Tenant
from tenants.services.rls import system_scope, tenant_scope

# Two weeks after a boundary is inside the month in every time zone: a tenant that changes its time zone
# gets one period that is hours longer or shorter, never a second one with the same label.
OFFSET_INTO_MONTH = timedelta(days=14)
MAX_TZDATA_VERSION_LENGTH = 20  # characters of it that a run stores
BILLING_LOCK_ID = 7_012_026  # advisory lock of all tenants
# From so many tenants on, one lock of all: PostgreSQL's table of locks is small (max_locks_per_transaction).
MAX_TENANT_LOCKS = 600
# In the order of their keys, so that two runs over the same tenants cannot deadlock.
TENANT_LOCKS_SQL = """
SELECT pg_advisory_xact_lock(6, key)
  FROM (SELECT DISTINCT hashtext(tenant) AS key FROM unnest(%s::text[]) AS tenant ORDER BY key) keys
"""


def take_tenant_billing_locks(tenants: Collection[str]) -> None:
    """Exclude charging, month closes, corrections and changes of terms of these tenants until commit.

    Other tenants go on. Call it once in a transaction, or again for the same tenants.
    """
    if len(tenants) > MAX_TENANT_LOCKS:
        take_billing_lock()
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [BILLING_LOCK_ID])
        cursor.execute(TENANT_LOCKS_SQL, [list(tenants)])


def take_billing_lock() -> None:
    """Exclude what `take_tenant_billing_locks` excludes, for all tenants: list prices and tax rates are theirs."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [BILLING_LOCK_ID])


@transaction.atomic
def ensure_periods(tenant: Tenant, *, since: datetime, until: datetime) -> None:
    """Create the tenant's missing months from `since` until past `until`.

    Call in its RLS scope.
    """
    spans = list(BillingPeriod.objects.filter(tenant=tenant).order_by("span").values_list("span", flat=True))
    if spans:
        missing = [
            *_months_before(tenant.time_zone, spans[0].lower, since),
            *_months_after(tenant.time_zone, spans[-1].upper, until),
        ]
    else:
        first = month_of(tenant.time_zone, since.astimezone(UTC))
        missing = [first, *_months_after(tenant.time_zone, first.end, until)]
    _create_periods((tenant, span) for span in missing)


def ensure_following_periods(months: Sequence[tuple[Tenant, BillingPeriod]], *, until: datetime) -> None:
    """Create the missing months after these until past `until`.

    Call in the RLS scope of all their tenants.
    """
    last_ends = {tenant.pk: month.span.upper for tenant, month in months}
    latest = (
        BillingPeriod.objects.filter(tenant__in=list(last_ends))
        .values_list("tenant")
        .annotate(end=Max(Upper("span")))
        .order_by()
    )
    for tenant_id, end in latest:
        last_ends[tenant_id] = max(last_ends[tenant_id], end)
    _create_periods(
        (tenant, span) for tenant, _ in months for span in _months_after(tenant.time_zone, last_ends[tenant.pk], until)
    )


def create_missing_periods(*, now: datetime) -> None:
    """Create missing months of tenants with running leases, volumes, commitments or minimum spend."""
    with system_scope():
        found = query_rows("billing/periods/tenants_missing_periods", now=now)
    for tenant_id, since, last in found:
        with tenant_scope(tenant_id):
            ensure_periods(Tenant.objects.get(pk=tenant_id), since=since, until=last)


def current_period(tenant: Tenant, *, now: datetime) -> BillingPeriod:
    """Return the month that contains `now`; create it if it is missing."""
    found = BillingPeriod.objects.filter(tenant=tenant, span__contains=now).first()
    if found is None:
        ensure_periods(tenant, since=now, until=now)
        found = BillingPeriod.objects.get(tenant=tenant, span__contains=now)
    return found


def record_blocked_reason(tenant_id: str, label: str, why: str) -> None:
    """Store why a month cannot close until a person fixes something.

    The same reason again writes nothing.
    """
    reason = why[:MAX_BLOCKED_REASON_LENGTH]
    with tenant_scope(tenant_id):
        months = BillingPeriod.objects.filter(tenant=tenant_id, label=label, status=OPEN)
        months.exclude(blocked_reason=reason).update(blocked_reason=reason)


def period_label(time_zone: str, span: Period) -> str:
    """Return a month's label in the tenant's time zone: 2026-11."""
    return f"{(span.start + (span.end - span.start) / 2).astimezone(ZoneInfo(time_zone)):%Y-%m}"


@cache
def tzdata_version(folders: tuple[str, ...] = TZPATH) -> str:
    """Return the installed time zone database's version, such as 2025b; empty if unknown."""
    for folder in folders:
        rules = Path(folder) / "tzdata.zi"
        if rules.is_file():
            with rules.open() as lines:
                return lines.readline().removeprefix("# version").strip()[:MAX_TZDATA_VERSION_LENGTH]
    return ""


def _create_periods(spans: Iterable[tuple[Tenant, Period]]) -> None:
    BillingPeriod.objects.bulk_create(
        [
            BillingPeriod(
                tenant=tenant,
                label=period_label(tenant.time_zone, span),
                span=DateTimeTZRange(span.start, span.end),
                time_zone=tenant.time_zone,
            )
            for tenant, span in spans
        ],
        ignore_conflicts=True,  # another worker created the same month
    )


def _months_after(time_zone: str, boundary: datetime, until: datetime) -> Iterator[Period]:
    boundary = boundary.astimezone(UTC)
    while boundary <= until:
        end = month_of(time_zone, boundary + OFFSET_INTO_MONTH).end
        yield Period(boundary, end)
        boundary = end


def _months_before(time_zone: str, boundary: datetime, since: datetime) -> Iterator[Period]:
    boundary = boundary.astimezone(UTC)
    while boundary > since:
        start = month_of(time_zone, boundary - OFFSET_INTO_MONTH).start
        yield Period(start, boundary)
        boundary = start
