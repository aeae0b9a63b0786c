"""A tenant's months in its own time zone: made when they are needed, each beginning where the last one ends."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

from django.db import transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import Max
from django.db.models.functions import Upper

from billing.domain.periods import Period, month_of
from billing.models import BillingPeriod
from billing.models.periods import LONGEST_WHY, OPEN
from tenants.models import Tenant
from tenants.services.walls import as_tenant

# Two weeks into a month is in that month wherever its border lies: a tenant that changes its time zone
# gets one period that is hours longer or shorter, never a second one of the same name.
INSIDE = timedelta(days=14)
EDITION = 20  # letters of it that a run keeps


@transaction.atomic
def ensure(tenant: Tenant, *, since: datetime, until: datetime) -> None:
    """Make the tenant's months tile the time from `since` until past `until`; called behind its wall."""
    spans = list(BillingPeriod.objects.filter(tenant=tenant).order_by("span").values_list("span", flat=True))
    if spans:
        missing = [
            *_backwards(tenant.time_zone, spans[0].lower, since),
            *_onwards(tenant.time_zone, spans[-1].upper, until),
        ]
    else:
        first = month_of(tenant.time_zone, since.astimezone(UTC))
        missing = [first, *_onwards(tenant.time_zone, first.end, until)]
    _make((tenant, span) for span in missing)


def follow(months: Sequence[tuple[Tenant, BillingPeriod]], *, until: datetime) -> None:
    """Make the months after these until past `until`, where there are none; behind the wall of all of them."""
    borders = {tenant.pk: month.span.upper for tenant, month in months}
    latest = (
        BillingPeriod.objects.filter(tenant__in=list(borders))
        .values_list("tenant")
        .annotate(end=Max(Upper("span")))
        .order_by()
    )
    for tenant_id, end in latest:
        borders[tenant_id] = max(borders[tenant_id], end)
    _make(
        (tenant, span)
        for tenant, _ in months
        for span in _onwards(tenant.time_zone, borders[tenant.pk], until)
    )


def current(tenant: Tenant, *, now: datetime) -> BillingPeriod:
    """Return the month that `now` falls into, made if it is not there yet."""
    found = BillingPeriod.objects.filter(tenant=tenant, span__contains=now).first()
    if found is None:
        ensure(tenant, since=now, until=now)
        found = BillingPeriod.objects.get(tenant=tenant, span__contains=now)
    return found


def hold_up(tenant_id: str, label: str, why: str) -> None:
    """Keep with a month why it cannot close until a person mends something; the same again writes nothing."""
    said = why[:LONGEST_WHY]
    with as_tenant(tenant_id):
        months = BillingPeriod.objects.filter(tenant=tenant_id, label=label, status=OPEN)
        months.exclude(held_up=said).update(held_up=said)


def label(time_zone: str, span: Period) -> str:
    """Name a month as its tenant does: 2026-11."""
    return f"{(span.start + (span.end - span.start) / 2).astimezone(ZoneInfo(time_zone)):%Y-%m}"


@cache
def edition(folders: tuple[str, ...] = TZPATH) -> str:
    """Name the edition of the rules that tell midnights, as 2025b; nothing where the machine does not know."""
    for folder in folders:
        rules = Path(folder) / "tzdata.zi"
        if rules.is_file():
            with rules.open() as lines:
                return lines.readline().removeprefix("# version").strip()[:EDITION]
    return ""


def _make(spans: Iterable[tuple[Tenant, Period]]) -> None:
    BillingPeriod.objects.bulk_create(
        [
            BillingPeriod(
                tenant=tenant,
                label=label(tenant.time_zone, span),
                span=DateTimeTZRange(span.start, span.end),
                time_zone=tenant.time_zone,
            )
            for tenant, span in spans
        ],
        ignore_conflicts=True,  # another worker made the same month
    )


def _onwards(time_zone: str, border: datetime, until: datetime) -> Iterator[Period]:
    border = border.astimezone(UTC)
    while border <= until:
        end = month_of(time_zone, border + INSIDE).end
        yield Period(border, end)
        border = end


def _backwards(time_zone: str, border: datetime, since: datetime) -> Iterator[Period]:
    border = border.astimezone(UTC)
    while border > since:
        start = month_of(time_zone, border - INSIDE).start
        yield Period(start, border)
        border = start
