"""Spend: per day, week or month, by offering, project or whoever asked, against last month and the budget."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.db.models import Exists, F, OuterRef, Sum
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from billing.domain.money import decimal_string, exponent_of, to_minor
from billing.domain.money import shown as written
from billing.domain.outlook import Likely
from billing.domain.periods import Period, midnight, month_of
from billing.models import BillingPeriod, Invoice, InvoiceStatus, RatedCharge
from billing.portal import calls, downloads, meters
from billing.portal.addresses import chosen, menu, options, varied
from billing.portal.pages import PageRequest, page
from billing.portal.spend_charts import columns, expected, limit, minor, now_at, track
from billing.portal.tally import SERIES, TAG, Group, Tally, asked, key_of, tally
from billing.services import outlook as ahead
from billing.services import spend as services
from billing.services.spend import Line

HOUR = timedelta(hours=1)
STEPS = [("day", "Day"), ("week", "Week"), ("month", "Month")]
GROUPS = [("offering", "offering"), ("project", "project"), ("user", "who asked")]
CLASSES = [("on_demand", "on-demand"), ("spot", "spot")]
WEEKS, MONTHS, ROWS = 13, 12, 50
HEADS = ["day", "group", "unit_seconds", "amount", "currency"]


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    group: Group
    share: str
    change: str
    parts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, group: Group, told: Tally, before: Tally) -> "Row":
        change = meters.changed(group.minor, before.minor_of(group.key))
        return cls(group, told.share(group), change, ((group.kind, group.minor),))

    @property
    def words(self) -> str:
        return f"{self.group.name}: {self.share} of all"


@require_GET
@page("usage.read")
def spend(request: PageRequest) -> HttpResponse:
    tenant, now = request.tenant, request.now
    zone = ZoneInfo(tenant.time_zone)
    step = chosen(request, "by", dict(STEPS), "day")
    groups = [*GROUPS, *((TAG + name, name) for name in services.tags(request.scope.ids))]
    group = chosen(request, "group", dict(groups), "offering")
    months = known_months(request)
    label = chosen(request, "period", dict(months), months[0][0])
    month = span_of(label, tenant.time_zone)
    until = min(month.end, now)
    borders = borders_of(step, month, until, tenant.time_zone)
    used = asked(request, borders, until=now, group=group)
    own = used if step == "day" else asked(request, [month.start, month.end], until=until, group=group)
    told = tally(request, own, group=group)
    past = month_of(tenant.time_zone, month.start - HOUR)
    middle = meters.same_stretch(past, until - month.start)
    earlier = asked(request, sorted({past.start, middle, past.end}), until=past.end, group=group)
    before = tally(request, [line for line in earlier if line.since < middle], group=group)
    if request.GET.get("format") == "csv":
        return downloads.table(f"spend-{label}", HEADS, lines(used, told, group, zone))
    in_all = tally(request, earlier, group=group).minor
    running = label == months[0][0] and until == now
    outlook = likely(request, running=running, step=step)
    drawn = columns(used, told, borders, step=step, group=group, zone=zone)
    budget = meters.budget(request.scope)
    context: dict[str, Any] = {
        "told": told,
        "rows": [Row.of(each, told, before) for each in told.most(ROWS)],
        "change": meters.changed(told.minor, before.minor),
        "compared": meters.against(
            told.minor, before.minor, f"the same days of {words(past, tenant.time_zone)}"
        ),
        "before": before,
        "label": label,
        "month": words(month, tenant.time_zone),
        "past": words(past, tenant.time_zone),
        "days": (until.astimezone(ZoneInfo(tenant.time_zone)) - timedelta(microseconds=1)).day,
        "running": running,
        "columns": expected(drawn, outlook, tenant.currency) if outlook else drawn,
        "now_at": now_at(month, now) if outlook else None,
        "likely": (month_end := minor(outlook.month, exponent_of(tenant.currency))) if outlook else None,
        "likely_between": between(month_end, outlook, tenant.currency) if outlook else "",
        "last_day": month.end - HOUR,
        "series": SERIES[: len(told.series)],
        "keys": [{"kind": kind, "label": row.name} for kind, row in told.series],
        "track": {
            **track(used, month, tenant=tenant, now=now, outlook=outlook),
            **limit(budget, in_all, words(past, tenant.time_zone)),
        }
        if step == "day"
        else None,
        "budget": budget,
        "draft": (invoice := draft(request, label)),
        "draft_note": note(invoice, told, late=getattr(invoice, "late", False)),
        "chart_words": f"Spend per {step}, stacked by {dict(groups)[group]}",
        "track_words": f"Running total of {words(month, tenant.time_zone)}",
        "step": step,
        "steps": options(request, "by", STEPS, step),
        "filters": chips(request, months, label, groups, group),
        "group": dict(groups)[group],
        "currency": tenant.currency,
        "project": request.project,
        "csv": varied(request, format="csv"),
        "now": now,
        "call": calls.get("/usage?" + urlencode(same(request, month.start, until, group))),
        "call_outlook": calls.get(
            "/usage-outlook" + ("" if request.scope.whole else f"?project={request.project.pk}")
        ),
        "call_columns": calls.get("/usage?" + urlencode(same(request, borders[0], now, group)))
        if step != "day"
        else "",
    }
    return render(request, "billing/spend.html", context)


def likely(request: PageRequest, *, running: bool, step: str) -> ahead.Outlook | None:
    """Return where the month is going, where the page shows its days and all of them; else, and too early, None."""
    if not running or step != "day" or request.GET.get("class"):
        return None
    return ahead.outlook(request.tenant, now=request.now, projects=request.scope.ids)


def between(likely: Likely, outlook: ahead.Outlook, currency: str) -> str:
    """Write what the month will lie between, four times of five, and what it comes to beyond that as things stand."""
    told = f"four times of five {written(likely.low, currency)} – {written(likely.high, currency)}"
    going_on = to_minor(outlook.going_on, exponent_of(currency))
    return f"{told}; {written(going_on, currency)} if all goes on" if going_on > likely.high else told


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


def borders_of(step: str, month: Period, until: datetime, time_zone: str) -> list[datetime]:
    """Return where columns begin and the last one ends: the month's days, or the weeks or months up to now."""
    if step == "day":
        begins, ends = services.days(time_zone, month.start, month.end)
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


def words(month: Period, time_zone: str) -> str:
    return f"{(month.start + timedelta(days=14)).astimezone(ZoneInfo(time_zone)):%B}"


def grouped(group: str) -> dict[str, str]:
    """Return how the API is asked for a grouping."""
    return (
        {"group_by": "tag", "tag": group.removeprefix(TAG)} if group.startswith(TAG) else {"group_by": group}
    )


def same(request: PageRequest, since: datetime, until: datetime, group: str) -> dict[str, str]:
    """Return the parameters by which the API tells the same usage."""
    zone = ZoneInfo(request.tenant.time_zone)
    wanted = {"from": f"{since.astimezone(zone):%Y-%m-%d}", **grouped(group)}
    if until < request.now:
        wanted["to"] = f"{until.astimezone(zone):%Y-%m-%d}"
    if not request.scope.whole:
        wanted["project"] = request.project.pk
    if group == "offering" and (terms := chosen(request, "class", dict(CLASSES))):
        wanted["price_class"] = terms
    return wanted


def draft(request: PageRequest, label: str) -> Invoice | None:
    """Return the month's invoice, whatever state it is in, whether it carries `late` seconds, and how much the `month`
    takes off its lines or adds; one query.

    None below the root, whose spend is only a part of it, and for whoever may not see the whole tenant's money.
    """
    if not (request.scope.whole and request.roles.may("billing.read", ())):
        return None
    rows = Invoice.objects.filter(tenant=request.tenant, period__label=label)
    late = RatedCharge.objects.filter(billed_period_id=OuterRef("period_id"))
    late = late.exclude(billed_period_id=F("period_id"))
    month = Sum("lines__month_num")
    return rows.exclude(status=InvoiceStatus.VOID).annotate(late=Exists(late), month_num=month).first()


def note(invoice: Invoice | None, told: Tally, *, late: bool) -> str:
    """Say how the invoice stands to what was spent."""
    if invoice is None or invoice.status != InvoiceStatus.DRAFT:
        return "final"
    if month := to_minor(int(getattr(invoice, "month_num", None) or 0), exponent_of(invoice.currency)):
        what = "taken off" if month < 0 else "added"
        return f"{written(abs(month), told.currency)} {what} by what was agreed for the month"
    open_minor = told.minor - invoice.subtotal
    if late or open_minor < 0:
        return "with what came late of months before"
    return f"{written(open_minor, told.currency)} more still runs" if open_minor else "all of it, to the cent"


def chips(
    request: PageRequest,
    months: list[tuple[str, str]],
    label: str,
    groups: list[tuple[str, str]],
    group: str,
) -> list[dict[str, Any]]:
    """Return the filters: the month, the grouping, the price class."""
    return [
        {
            "label": "Period",
            "value": dict(months)[label],
            "options": options(request, "period", months, label),
        },
        {
            "label": "Group by",
            "value": dict(groups)[group],
            "options": options(request, "group", groups, group),
        },
        *([menu(request, "class", "Class", CLASSES)] if group == "offering" else []),
    ]


def lines(used: list[Line], told: Tally, group: str, zone: ZoneInfo) -> list[list[object]]:
    """Return the cells of the CSV: what each group used in each stretch, rounded on its own."""
    names = {row.key: row.name for row in told.groups}
    places = exponent_of(told.currency)
    sums: dict[tuple[datetime, str], tuple[int, int]] = {}
    for line in used:
        key = line.since, key_of(line, group)
        seconds, num = sums.get(key, (0, 0))
        sums[key] = seconds + line.unit_seconds, num + line.exact_num
    return [
        [
            f"{since.astimezone(zone):%Y-%m-%d}",
            names.get(key, key),
            unit_seconds,
            decimal_string(to_minor(num, places), told.currency),
            told.currency,
        ]
        for (since, key), (unit_seconds, num) in sums.items()
    ]
