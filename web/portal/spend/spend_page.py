"""Spend page: per day, week or month, grouped, against last month and the budget."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.db.models import Exists, F, OuterRef, Sum
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from billing.domain.money import decimal_string, exponent_of, to_minor
from billing.domain.money import format_minor as written
from billing.domain.periods import Period, midnight, month_of
from billing.domain.spend_forecast import ExpectedCost
from billing.models import BillingPeriod, Budget, Invoice, InvoiceStatus, RatedCharge
from billing.services.rating import spend as services
from billing.services.rating.spend import SpendLine
from billing.services.reports import spend_forecast as ahead
from web.http import downloads
from web.http.query_strings import LinkOption, chosen_value, filter_chip, link_options, page_url
from web.portal import api_examples
from web.portal.layout import usage_meters
from web.portal.page_context import PageRequest, tenant_page
from web.portal.spend.spend_charts import (
    columns_before_now,
    reference_line,
    round_forecast,
    running_total,
    spend_columns,
    with_forecast_columns,
)
from web.portal.spend.spend_totals import (
    SERIES,
    TAG_PREFIX,
    SpendGroup,
    SpendTotals,
    group_key,
    spend_totals_by_group,
    usage_lines,
)

HOUR = timedelta(hours=1)
STEP_CHOICES = [("day", gettext_noop("Day")), ("week", gettext_noop("Week")), ("month", gettext_noop("Month"))]
GROUP_CHOICES = [("offering", "offering"), ("project", "project"), ("user", "user")]
PRICE_CLASS_CHOICES = [("on_demand", "on-demand"), ("spot", "spot")]
WEEKS, MONTHS, MAX_ROWS = 13, 12, 50
CSV_HEADERS = ["day", "group", "unit_seconds", "amount", "currency"]


@dataclass(frozen=True)
class SpendRow:
    """One row of the spend table."""

    group: SpendGroup
    share: str
    change: str
    parts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, group: SpendGroup, totals: SpendTotals, before: SpendTotals) -> "SpendRow":
        change = usage_meters.format_change(group.minor, before.minor_of(group.key))
        return cls(group, totals.share(group), change, ((group.kind, group.minor),))

    @property
    def share_text(self) -> str:
        return _("{group_name}: {share} of total").format(group_name=self.group.name, share=self.share)


@tenant_page("usage.read")
def show_spend(request: PageRequest) -> HttpResponse:
    query = read_spend_query(request)
    used = usage_lines(request, query.boundaries, until=request.now, group=query.group)
    own = used
    if query.step != "day":
        own = usage_lines(request, [query.month.start, query.month.end], until=query.until, group=query.group)
    totals = spend_totals_by_group(request, own, group=query.group)
    if request.GET.get("format") == "csv":
        rows = csv_rows(used, totals, query.group, ZoneInfo(request.tenant.time_zone))
        return downloads.csv_response(f"spend-{query.label}", CSV_HEADERS, rows)
    return render(request, "spend/spend.html", {"page": build_spend_page(request, query, used, totals)})


@dataclass(frozen=True, slots=True)
class SpendQuery:
    """Month, columns and grouping that the query string names, with the choices there are."""

    step: str
    group: str
    groups: dict[str, str]
    label: str  # the month, as in 2026-11
    months: dict[str, str]
    month: Period
    until: datetime
    boundaries: list[datetime]


def read_spend_query(request: PageRequest) -> SpendQuery:
    """Read the query string; a value that is not offered counts as the default."""
    step = chosen_value(request, "by", dict(STEP_CHOICES), "day")
    groups = dict([*GROUP_CHOICES, *((TAG_PREFIX + name, name) for name in services.tag_names(request.scope.ids))])
    months = dict(month_choices(request))
    label = chosen_value(request, "period", months, next(iter(months)))
    month = month_span(label, request.tenant.time_zone)
    until = min(month.end, request.now)
    return SpendQuery(
        step=step,
        group=chosen_value(request, "group", groups, "offering"),
        groups=groups,
        label=label,
        months=months,
        month=month,
        until=until,
        boundaries=column_boundaries(step, month, until, request.tenant.time_zone),
    )


@dataclass(frozen=True, slots=True)
class SpendPage:
    """A month's spend by group and over time, beside last month and the budget."""

    totals: SpendTotals
    before: SpendTotals  # the same days of the month before
    compared: str
    query: SpendQuery
    month: str
    past: str
    days: int
    running: bool
    columns: list[dict[str, Any]]
    now_at: Decimal | None
    forecast: int | None  # minor units, at the end of this month; None for others and parts
    likely: ExpectedCost | None  # from past weeks
    likely_between: str
    track: dict[str, Any] | None
    budget: Budget | None
    draft: Invoice | None
    draft_note: str
    steps: list[LinkOption]
    filters: list[dict[str, Any]]
    csv: str
    calls: dict[str, str]

    @property
    def rows(self) -> list[SpendRow]:
        return [SpendRow.of(each, self.totals, self.before) for each in self.totals.largest(MAX_ROWS)]

    @property
    def change(self) -> str:
        return usage_meters.format_change(self.totals.minor, self.before.minor)

    @property
    def last_day(self) -> datetime:
        return self.query.month.end - HOUR

    @property
    def group(self) -> str:
        return self.query.groups[self.query.group]

    @property
    def draft_label(self) -> str:
        is_draft = self.draft is not None and self.draft.status == InvoiceStatus.DRAFT
        return _("On the draft invoice") if is_draft else _("Invoice {draft}").format(draft=self.draft)

    @property
    def chart_words(self) -> str:
        return _("Spend per {step}, stacked by {group}").format(step=self.query.step, group=self.group)

    @property
    def track_words(self) -> str:
        return _("Running total of {month}").format(month=self.month)

    @property
    def series(self) -> tuple[str, ...]:
        return SERIES[: len(self.totals.series)]

    @property
    def keys(self) -> list[dict[str, str]]:
        return [{"kind": kind, "label": row.name} for kind, row in self.totals.series]


def build_spend_page(request: PageRequest, query: SpendQuery, used: list[SpendLine], totals: SpendTotals) -> SpendPage:
    """Compare a month's usage with the month before, the budget, the invoice and the forecast."""
    tenant, now, month, group = request.tenant, request.now, query.month, query.group
    zone, by_day = ZoneInfo(tenant.time_zone), query.step == "day"
    past = month_of(tenant.time_zone, month.start - HOUR)
    past_name = month_name_of(past, tenant.time_zone)
    middle = usage_meters.same_moment_in(past, query.until - month.start)
    earlier = usage_lines(request, sorted({past.start, middle, past.end}), until=past.end, group=group)
    before = spend_totals_by_group(request, [line for line in earlier if line.since < middle], group=group)
    in_all = spend_totals_by_group(request, earlier, group=group).minor
    running = query.label == next(iter(query.months)) and query.until == now
    whole = running and not request.GET.get("class")
    expected = expected_month(request) if whole and by_day else None
    likely = round_forecast(expected.month, exponent_of(tenant.currency)) if expected else None
    drawn = spend_columns(used, totals, query.boundaries, step=query.step, group=group, zone=zone)
    budget = usage_meters.project_budget(request.scope)
    invoice = month_invoice(request, query.label)
    of_project = "" if request.scope.whole else f"?project={request.project.pk}"
    return SpendPage(
        totals=totals,
        before=before,
        compared=usage_meters.format_change_against(
            totals.minor, before.minor, _("same days in {past_name}").format(past_name=past_name)
        ),
        query=query,
        month=month_name_of(month, tenant.time_zone),
        past=past_name,
        days=(query.until.astimezone(zone) - timedelta(microseconds=1)).day,
        running=running,
        columns=with_forecast_columns(drawn, expected, tenant.currency) if expected else drawn,
        now_at=columns_before_now(month, now) if expected else None,
        forecast=services.spend_by_month_end(tenant, now=now, projects=request.scope.ids) if whole else None,
        likely=likely,
        likely_between=interval_text(likely, tenant.currency) if likely else "",
        track={
            **running_total(used, month, tenant=tenant, now=now, forecast=expected),
            **reference_line(budget, in_all, past_name),
        }
        if by_day
        else None,
        budget=budget,
        draft=invoice,
        draft_note=invoice_note(invoice, totals, late=getattr(invoice, "late", False)),
        steps=link_options(request, "by", [(step, _(label)) for step, label in STEP_CHOICES], query.step),
        filters=spend_filters(request, query),
        csv=page_url(request, format="csv"),
        calls={
            "usage": usage_call(request, month.start, query.until, group),
            "forecast": api_examples.curl_get("/usage-forecast" + of_project),
            "columns": "" if by_day else usage_call(request, query.boundaries[0], now, group),
        },
    )


def expected_month(request: PageRequest) -> ahead.SpendForecast | None:
    """Return the month's expected cost from past weeks; None while there are too few."""
    return ahead.forecast_spend(request.tenant, now=request.now, projects=request.scope.ids)


def interval_text(likely: ExpectedCost, currency: str) -> str:
    """Return the 80 % interval of the expected cost."""
    return _("from past weeks; 80 % likely: {amount} – {amount_2}").format(
        amount=written(likely.low, currency), amount_2=written(likely.high, currency)
    )


def month_choices(request: PageRequest) -> list[tuple[str, str]]:
    """Return the months with data, newest first, the present one always; one query."""
    rows = BillingPeriod.objects.filter(tenant=request.tenant, span__startswith__lte=request.now)
    labels = list(rows.order_by("-span").values_list("label", flat=True)[:24])
    here = f"{request.now.astimezone(ZoneInfo(request.tenant.time_zone)):%Y-%m}"
    return [(label, f"{datetime.fromisoformat(label + '-01'):%B %Y}") for label in dict.fromkeys([here, *labels])]


def month_span(label: str, time_zone: str) -> Period:
    middle = datetime.fromisoformat(f"{label}-15").replace(tzinfo=ZoneInfo(time_zone))
    return month_of(time_zone, middle)


def column_boundaries(step: str, month: Period, until: datetime, time_zone: str) -> list[datetime]:
    """Return the boundaries of the columns: the month's days, or recent weeks or months."""
    if step == "day":
        begins, ends = services.local_days(time_zone, month.start, month.end)
        return [*begins, ends[-1]]
    zone = ZoneInfo(time_zone)
    today = until.astimezone(zone).date()
    if step == "week":
        last = today - timedelta(days=today.weekday())
        firsts = [last - timedelta(weeks=n) for n in range(WEEKS - 1, -2, -1)]
    else:
        number = today.year * 12 + today.month - 1
        numbers = range(number - MONTHS + 1, number + 2)
        firsts = [date(n // 12, n % 12 + 1, 1) for n in numbers]
    return [midnight(first, zone) for first in firsts]


def month_name_of(month: Period, time_zone: str) -> str:
    return f"{(month.start + timedelta(days=14)).astimezone(ZoneInfo(time_zone)):%B}"


def grouping_parameters(group: str) -> dict[str, str]:
    """Return the API's parameters for a grouping."""
    return (
        {"group_by": "tag", "tag": group.removeprefix(TAG_PREFIX)}
        if group.startswith(TAG_PREFIX)
        else {"group_by": group}
    )


def usage_call(request: PageRequest, since: datetime, until: datetime, group: str) -> str:
    """Return the API call for the same usage."""
    zone = ZoneInfo(request.tenant.time_zone)
    wanted = {"from": f"{since.astimezone(zone):%Y-%m-%d}", **grouping_parameters(group)}
    if until < request.now:
        wanted["to"] = f"{until.astimezone(zone):%Y-%m-%d}"
    if not request.scope.whole:
        wanted["project"] = request.project.pk
    if group == "offering" and (terms := chosen_value(request, "class", dict(PRICE_CLASS_CHOICES))):
        wanted["price_class"] = terms
    return api_examples.curl_get("/usage?" + urlencode(wanted))


def month_invoice(request: PageRequest, label: str) -> Invoice | None:
    """Return the month's invoice, with late charges and adjustments noted; one query.

    `late` tells whether it bills seconds of earlier months, `month_num` what adjustments take off or
    add. None below the root, whose spend is only a part of it, and for whoever may not see the whole
    tenant's money.
    """
    if not (request.scope.whole and request.roles.may("billing.read", ())):
        return None
    rows = Invoice.objects.filter(tenant=request.tenant, period__label=label)
    late = RatedCharge.objects.filter(billed_period_id=OuterRef("period_id"))
    late = late.exclude(billed_period_id=F("period_id"))
    month = Sum("lines__month_num")
    return rows.exclude(status=InvoiceStatus.VOID).annotate(late=Exists(late), month_num=month).first()


def invoice_note(invoice: Invoice | None, totals: SpendTotals, *, late: bool) -> str:
    """Describe the difference between the invoice and what was spent."""
    if invoice is None or invoice.status != InvoiceStatus.DRAFT:
        return "final"
    if month := to_minor(int(getattr(invoice, "month_num", None) or 0), exponent_of(invoice.currency)):
        what = "deducted" if month < 0 else "added"
        return _("{amount} {what} by adjustments for the month").format(
            amount=written(abs(month), totals.currency), what=what
        )
    open_minor = totals.minor - invoice.subtotal
    if late or open_minor < 0:
        return _("includes late charges of earlier months")
    return (
        _("+ {amount} from running leases").format(amount=written(open_minor, totals.currency))
        if open_minor
        else _("matches the spend exactly")
    )


def spend_filters(request: PageRequest, query: SpendQuery) -> list[dict[str, Any]]:
    """Return the filter chips: month, grouping, price class."""
    chosen = [(_("Period"), "period", query.months, query.label), (_("Group by"), "group", query.groups, query.group)]
    return [
        *(
            {"label": label, "value": of[value], "options": link_options(request, name, list(of.items()), value)}
            for label, name, of, value in chosen
        ),
        *([filter_chip(request, "class", _("Class"), PRICE_CLASS_CHOICES)] if query.group == "offering" else []),
    ]


def csv_rows(used: list[SpendLine], totals: SpendTotals, group: str, zone: ZoneInfo) -> list[list[object]]:
    """Return the CSV rows: each group's usage in each interval, rounded on its own."""
    names = {row.key: row.name for row in totals.groups}
    places = exponent_of(totals.currency)
    sums: dict[tuple[datetime, str], tuple[int, int]] = {}
    for line in used:
        key = line.since, group_key(line, group)
        seconds, num = sums.get(key, (0, 0))
        sums[key] = seconds + line.unit_seconds, num + line.exact_num
    return [
        [
            f"{since.astimezone(zone):%Y-%m-%d}",
            names.get(key, key),
            unit_seconds,
            decimal_string(to_minor(num, places), totals.currency),
            totals.currency,
        ]
        for (since, key), (unit_seconds, num) in sums.items()
    ]
