"""What budgets have to say: stops that are announced or made, and shares that were reached this month."""

from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Q, QuerySet
from django.urls import reverse

from billing.domain.money import Money
from billing.domain.watching import Measure, StopOf
from billing.models import BudgetAlert, BudgetStop
from billing.portal.pages import PageRequest

SHOWN = 8
FULL = 100  # percent
ABOVE = "A project above this one"  # of which nobody here hears more


@dataclass(frozen=True, slots=True)
class Said:
    """What was told of a budget, and its shape on the page."""

    alert: BudgetAlert
    words: str

    @property
    def state(self) -> str:
        if self.alert.lifted_at is not None:
            return "released"
        return "failed" if self.alert.percent >= FULL else "queued"


def notes(request: PageRequest) -> list[dict[str, str]]:
    """Return what concerns the open project now: stops first, and then budgets that are, or will be, used up.

    Two queries.
    """
    names = {project.pk: project.name for project in request.projects}
    stops = near(request, BudgetStop.objects.all()).order_by("due_at")
    found = [stop_note(stop, names, request) for stop in stops]
    stopped = {stop.budget_id for stop in stops if stop.what == StopOf.ALL}
    full = near(request, BudgetAlert.objects.filter(percent__gte=FULL)).order_by("at")
    told = {alert.budget_id: alert for alert in full if alert.budget.project_id in names}
    return [*found, *(alert_note(each, names) for key, each in told.items() if key not in stopped)]


def near(request: PageRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
    """Leave what holds this month and is on the open project, above it or below it."""
    here = request.project
    mine = Q(budget__project__in=here.path) | Q(budget__project__path__contains=[here.pk])
    now = rows.filter(mine, tenant=request.tenant, lifted_at=None, period__span__contains=request.now)
    return now.select_related("budget__project")


def latest(request: PageRequest) -> list[Said]:
    """Return what was told lately of budgets that the visitor may see; one query."""
    reach = [project.pk for project in request.projects]
    rows = BudgetAlert.objects.select_related("budget__project", "period")
    found = rows.filter(tenant=request.tenant, budget__project__in=reach).order_by("-at", "-pk")[:SHOWN]
    return [Said(alert, words(alert)) for alert in found]


def stop_note(stop: BudgetStop, names: dict[str, str], request: PageRequest) -> dict[str, str]:
    name = names.get(stop.budget.project_id, ABOVE)
    zone = ZoneInfo(request.tenant.time_zone)
    due = stop.due_at.astimezone(zone)
    at = f"{due:%H:%M}" if due.date() == request.now.astimezone(zone).date() else f"{due.day} {due:%b, %H:%M}"
    if stop.trouble:
        return note("bad", f"{name}: what its budget ends has not all ended.", f"{stop.trouble}.")
    if stop.what == StopOf.IDLE:
        head = f"{name}: what is idle ends from {at} on."
        text = f"Its budget is spent to {stop.percent} %. Idle is what is charged while nothing of it runs."
        return note("wait", head, text)
    if stop.done_at is not None:
        text = (
            "Nothing new begins there until its budget is raised or the next month begins. Volumes are kept."
        )
        return note("bad", f"{name}: its budget has ended all that ran.", text)
    text = f"Its budget is spent to {stop.percent} %, and nothing new begins. Raise it before then, and all goes on."
    return note("bad", f"{name}: all that runs there ends at {at}.", text)


def alert_note(alert: BudgetAlert, names: dict[str, str]) -> dict[str, str]:
    name, limit = names[alert.budget.project_id], Money(alert.limit_minor, alert.budget.currency)
    soft = alert.budget.stop_new_at is None
    if alert.measure == Measure.FORECAST:
        amount = Money(alert.minor, alert.budget.currency)
        text = "That is what is spent, and what runs now to its end."
        return note("wait", f"{name} will come to {amount} of {limit} this month.", text)
    text = "What runs goes on, and no lease begins that it has no room for."
    if soft:
        text = "Its budget only tells: leases begin and go on."
    return note("bad", f"The {limit} of {name} for this month are used up.", text)


def note(kind: str, head: str, text: str) -> dict[str, str]:
    return {"kind": kind, "head": head, "text": text, "url": reverse("budgets")}


def words(alert: BudgetAlert) -> str:
    """Say in a line what was told."""
    amount, limit = (Money(minor, alert.budget.currency) for minor in (alert.minor, alert.limit_minor))
    if alert.measure == Measure.FORECAST:
        return f"will come to {amount}, {alert.percent} % of {limit}"
    return f"has come to {amount}, {alert.percent} % of {limit}"
