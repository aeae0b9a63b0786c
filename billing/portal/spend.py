"""Spend: per day, week or month, by offering or project, and how it stands against last month."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from billing.domain.money import decimal_string, exponent_of, to_minor
from billing.domain.money import shown as written
from billing.domain.periods import Period, month_of
from billing.models import BillingPeriod, Invoice, InvoiceStatus
from billing.portal import calls, downloads, meters
from billing.portal.addresses import chosen, menu, options, varied
from billing.portal.pages import PageRequest, page
from billing.portal.tally import SERIES, Group, Tally, tally
from billing.services import spend as services
from billing.services.spend import Used

HOUR = timedelta(hours=1)
STEPS = [("day", "Day"), ("week", "Week"), ("month", "Month")]
GROUPS = [("offering", "offering"), ("project", "project")]
CLASSES = [("on_demand", "on-demand"), ("spot", "spot")]
WEEKS, MONTHS = 13, 12
HEADS = ["day", "group", "unit_seconds", "amount", "currency"]


@dataclass(frozen=True)
class Line:
    """One row of the table."""

    group: Group
    share: str
    change: str
    parts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, group: Group, told: Tally, before: Tally) -> "Line":
        change = meters.changed(group.minor, before.minor_of(group.key))
        return cls(group, told.share(group), change, ((group.kind, group.minor),))

    @property
    def words(self) -> str:
        return f"{self.group.name}: {self.share} of all"


@require_GET
@page("usage.read")
def spend(request: PageRequest) -> HttpResponse:
    tenant, now = request.tenant, request.now
    step = chosen(request, "by", dict(STEPS), "day")
    group = chosen(request, "group", dict(GROUPS), "offering")
    months = known_months(request)
    label = chosen(request, "period", dict(months), months[0][0])
    month = span_of(label, tenant.time_zone)
    until = min(month.end, now)
    span = Period(month.start, until) if step == "day" else back(step, until, tenant.time_zone)
    used = services.by_day(tenant, span.start, span.end, group=group, projects=request.scope.ids)
    past = month_of(tenant.time_zone, month.start - HOUR)
    told = tally(request, month.start, until, group=group)
    before = tally(request, past.start, meters.same_stretch(past, until - month.start), group=group)
    if request.GET.get("format") == "csv":
        return downloads.table(f"spend-{label}", HEADS, lines(used, told, tenant.currency))
    context: dict[str, Any] = {
        "told": told,
        "rows": [Line.of(group, told, before) for group in told.groups],
        "change": meters.changed(told.minor, before.minor),
        "before": before,
        "label": label,
        "month": words(month, tenant.time_zone),
        "past": words(past, tenant.time_zone),
        "days": (until.astimezone(ZoneInfo(tenant.time_zone)) - timedelta(microseconds=1)).day,
        "running": label == months[0][0] and until == now,
        "columns": columns(used, told, span, step, tenant.time_zone, month),
        "series": SERIES[: len(told.series)],
        "keys": [{"kind": kind, "label": row.name} for kind, row in told.series],
        "track": track(used, month, past, before, tenant.time_zone, request) if step == "day" else None,
        "draft": (invoice := draft(request, label)),
        "draft_note": note(invoice, told),
        "chart_words": f"Spend per {step}, stacked by {group}",
        "track_words": f"Running total of {words(month, tenant.time_zone)}",
        "step": step,
        "steps": options(request, "by", STEPS, step),
        "filters": chips(request, months, label, group),
        "group": group,
        "currency": tenant.currency,
        "project": request.project,
        "csv": varied(request, format="csv"),
        "now": now,
        "call": calls.get(f"/usage?from={span.start:%Y-%m-%d}&to={span.end:%Y-%m-%d}&group_by={group}"),
    }
    return render(request, "billing/spend.html", context)


def known_months(request: PageRequest) -> list[tuple[str, str]]:
    """Return the months there are, newest first; the present one always; one query."""
    rows = BillingPeriod.objects.filter(tenant=request.tenant, span__startswith__lte=request.now)
    labels = list(rows.order_by("-span").values_list("label", flat=True)[:24])
    here = f"{request.now.astimezone(ZoneInfo(request.tenant.time_zone)):%Y-%m}"
    return [
        (label, f"{datetime.fromisoformat(label + '-01'):%B %Y}") for label in dict.fromkeys([here, *labels])
    ]


def span_of(label: str, time_zone: str) -> Period:
    middle = datetime.fromisoformat(f"{label}-15").replace(tzinfo=ZoneInfo(time_zone))
    return month_of(time_zone, middle)


def back(step: str, until: datetime, time_zone: str) -> Period:
    """Return the stretch that weeks or months are drawn for, ending with the present one."""
    local = until.astimezone(ZoneInfo(time_zone))
    if step == "week":
        monday = local.date() - timedelta(days=local.weekday() + 7 * (WEEKS - 1))
    else:
        number = local.year * 12 + local.month - 1 - (MONTHS - 1)
        monday = local.date().replace(year=number // 12, month=number % 12 + 1, day=1)
    start = datetime(monday.year, monday.month, monday.day, tzinfo=ZoneInfo(time_zone))
    return Period(start.astimezone(month_of(time_zone, until).start.tzinfo), until)


def words(month: Period, time_zone: str) -> str:
    return f"{(month.start + timedelta(days=14)).astimezone(ZoneInfo(time_zone)):%B}"


def columns(
    used: list[Used], told: Tally, span: Period, step: str, time_zone: str, month: Period
) -> list[dict[str, Any]]:
    """Return one column per day of the month, or per week or month of the stretch, stacked by series."""
    zone, places = ZoneInfo(time_zone), exponent_of(told.currency)
    end = month.end if step == "day" else span.end
    days = [day.astimezone(zone) for day in services.days(time_zone, span.start, end)[0]]
    place = {row.key: i for i, (_, row) in enumerate(told.series)}
    last = max(len(told.series) - 1, 0)
    exact: dict[datetime, list[int]] = {day: [0] * (last + 1) for day in days}
    for each in used:
        exact[each.day.astimezone(zone)][place.get(each.key, last)] += each.exact_num
    found = []
    for _, same in groupby(days, key=lambda day: bucket(day, step)):
        of_bucket = list(same)
        sums = [sum(exact[day][i] for day in of_bucket) for i in range(last + 1)]
        amounts = tuple(to_minor(amount, places) for amount in sums)
        found.append({"label": axis(of_bucket[0], step), "amounts": amounts})
    return found


def bucket(day: datetime, step: str) -> tuple[int, ...]:
    if step == "day":
        return day.year, day.month, day.day
    return day.isocalendar()[:2] if step == "week" else (day.year, day.month)


def axis(day: datetime, step: str) -> str:
    if step == "day":
        return str(day.day) if day.day == 1 or day.day % 5 == 0 else ""
    return f"{day.day} {day:%b}" if step == "week" else f"{day:%b}"


def track(
    used: list[Used], month: Period, past: Period, before: Tally, time_zone: str, request: PageRequest
) -> dict[str, Any]:
    """Return the month's running total, against what last month came to in all."""
    places, zone = exponent_of(before.currency), ZoneInfo(time_zone)
    whole = round((month.end - month.start) / timedelta(days=1))
    by_day: dict[int, int] = {}
    for each in used:
        day = each.day.astimezone(zone).day
        by_day[day] = by_day.get(day, 0) + each.exact_num
    done, total = [(Decimal(0), 0)], 0
    for day in range(1, max(by_day, default=0) + 1):
        total += by_day.get(day, 0)
        # The last day is drawn as far as it has come.
        share = min(Decimal(day), Decimal((request.now - month.start) / HOUR) / 24)
        done.append((share / whole, to_minor(total, places)))
    limit = tally(request, past.start, past.end, group="offering").minor
    ticks = tuple((Decimal(day - 1) / whole, str(day)) for day in (1, 10, 20, whole))
    word = f"{words(past, time_zone)} in all" if limit else ""
    return {"done": tuple(done), "limit": limit, "limit_word": word, "ticks": ticks}


def draft(request: PageRequest, label: str) -> Invoice | None:
    """Return the month's invoice, whatever state it is in; one query."""
    rows = Invoice.objects.filter(tenant=request.tenant, period__label=label)
    return rows.exclude(status=InvoiceStatus.VOID).first()


def note(invoice: Invoice | None, told: Tally) -> str:
    """Say how the invoice stands to what was spent."""
    if invoice is None or invoice.status != InvoiceStatus.DRAFT:
        return "final"
    open_minor = told.minor - invoice.total
    return (
        f"{written(open_minor, told.currency)} more still runs"
        if open_minor > 0
        else "all of it, to the cent"
    )


def chips(
    request: PageRequest, months: list[tuple[str, str]], label: str, group: str
) -> list[dict[str, Any]]:
    """Return the filters: the month, the grouping, the price class."""
    return [
        {
            "label": "Period",
            "value": dict(months)[label],
            "options": options(request, "period", months, label),
        },
        {"label": "Group by", "value": group, "options": options(request, "group", GROUPS, group)},
        menu(request, "class", "Class", CLASSES),
    ]


def lines(used: list[Used], told: Tally, currency: str) -> list[list[object]]:
    """Return the cells of the CSV: what each group used on each day, exactly rounded on its own."""
    names = {row.key: row.name for row in told.groups}
    places = exponent_of(currency)
    return [
        [f"{each.day:%Y-%m-%d}", names.get(each.key, each.key), each.unit_seconds,
         decimal_string(to_minor(each.exact_num, places), currency), currency]
        for each in used
    ]  # fmt: skip
