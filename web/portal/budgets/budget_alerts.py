"""Budget alerts of the portal: announced or executed stops, and thresholds reached this month."""

from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from billing.domain.budgets import BudgetMeasure, StopScope
from billing.domain.money import Money
from billing.models import BudgetAlert, BudgetStop
from web.portal.page_context import PageRequest

MAX_ALERTS = 8
FULL_PERCENT = 100  # percent
HIDDEN_PROJECT = gettext_noop("A parent project")  # whose name the visitor may not see


@dataclass(frozen=True, slots=True)
class BudgetAlertRow:
    """A budget alert with its words and state badge."""

    alert: BudgetAlert
    text: str

    @property
    def state(self) -> str:
        if self.alert.lifted_at is not None:
            return "released"
        return "failed" if self.alert.percent >= FULL_PERCENT else "queued"


def budget_notices(request: PageRequest) -> list[dict[str, str]]:
    """Return the notices of the open project: stops first, then exhausted budgets.

    Two queries.
    """
    names = {project.pk: project.name for project in request.projects}
    stops = budget_rows_in_force(request, BudgetStop.objects.all()).order_by("due_at")
    found = [stop_notice(stop, names, request) for stop in stops]
    stopped = {stop.budget_id for stop in stops if stop.what == StopScope.ALL}
    full = budget_rows_in_force(request, BudgetAlert.objects.filter(percent__gte=FULL_PERCENT)).order_by("at")
    latest = {alert.budget_id: alert for alert in full if alert.budget.project_id in names}
    return [*found, *(alert_notice(each, names) for key, each in latest.items() if key not in stopped)]


def budget_rows_in_force(request: PageRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
    """Return this month's rows of budgets of the project, its ancestors and descendants."""
    here = request.project
    mine = Q(budget__project__in=here.path) | Q(budget__project__path__contains=[here.pk])
    now = rows.filter(mine, tenant=request.tenant, lifted_at=None, period__span__contains=request.now)
    return now.select_related("budget__project")


def latest_alerts(request: PageRequest) -> list[BudgetAlertRow]:
    """Return recent alerts of budgets that the visitor may see; one query."""
    reach = [project.pk for project in request.projects]
    rows = BudgetAlert.objects.select_related("budget__project", "period")
    found = rows.filter(tenant=request.tenant, budget__project__in=reach).order_by("-at", "-pk")[:MAX_ALERTS]
    return [BudgetAlertRow(alert, alert_text(alert)) for alert in found]


def stop_notice(stop: BudgetStop, names: dict[str, str], request: PageRequest) -> dict[str, str]:
    name = names.get(stop.budget.project_id) or _(HIDDEN_PROJECT)
    zone = ZoneInfo(request.tenant.time_zone)
    due = stop.due_at.astimezone(zone)
    at = f"{due:%H:%M}" if due.date() == request.now.astimezone(zone).date() else f"{due.day} {due:%b, %H:%M}"
    if stop.last_error:
        return notice(
            "danger",
            _("{name}: some leases could not be ended by its budget.").format(name=name),
            f"{stop.last_error}.",
        )
    if stop.what == StopScope.IDLE:
        head = _("{name}: idle leases end from {at}.").format(name=name, at=at)
        text = _("{percent} % of its budget is spent. Idle leases are charged but not ready.").format(
            percent=stop.percent
        )
        return notice("warning", head, text)
    if stop.done_at is not None:
        text = _("New leases are blocked until the budget is raised or the next month begins. Volumes are kept.")
        return notice("danger", _("{name}: its budget ended all leases.").format(name=name), text)
    text = _(
        "{percent} % of its budget is spent; new leases are blocked. Raise it in time to keep leases running."
    ).format(percent=stop.percent)
    return notice("danger", _("{name}: all leases end at {at}.").format(name=name, at=at), text)


def alert_notice(alert: BudgetAlert, names: dict[str, str]) -> dict[str, str]:
    name, limit = names[alert.budget.project_id], Money(alert.limit_minor, alert.budget.currency)
    soft = alert.budget.stop_new_at is None
    if alert.measure == BudgetMeasure.FORECAST:
        amount = Money(alert.minor, alert.budget.currency)
        text = _("This includes current spend and running leases until they end.")
        return notice(
            "warning",
            _("{name} is forecast to reach {amount} of {limit} this month.").format(
                name=name, amount=amount, limit=limit
            ),
            text,
        )
    text = _("Running leases continue; leases that would exceed the budget are blocked.")
    if soft:
        text = _("Its budget only notifies: leases are not blocked.")
    return notice(
        "danger", _("{name} has used its budget of {limit} for this month.").format(name=name, limit=limit), text
    )


def notice(kind: str, head: str, text: str) -> dict[str, str]:
    return {"kind": kind, "head": head, "text": text, "url": reverse("budgets")}


def alert_text(alert: BudgetAlert) -> str:
    """Return a budget alert in one line."""
    amount, limit = (Money(minor, alert.budget.currency) for minor in (alert.minor, alert.limit_minor))
    if alert.measure == BudgetMeasure.FORECAST:
        return _("is forecast to reach {amount}, {percent} % of {limit}").format(
            amount=amount, percent=alert.percent, limit=limit
        )
    return _("reached {percent} % of {limit}: {amount}").format(amount=amount, percent=alert.percent, limit=limit)
