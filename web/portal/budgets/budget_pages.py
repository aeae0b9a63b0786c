"""Pages of a project's monthly budgets.

They show what each project may cost, what is spent and held, and by which leases.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.db.models import F
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.domain.budgets import BudgetTerms, InvalidBudgetTerms, format_percents, parse_percent, parse_percents
from billing.domain.money import (
    InvalidAmount,
    Money,
    exponent_of,
    format_fixed_point,
    parse_amount,
    to_minor_up,
)
from billing.domain.periods import month_of
from billing.models import Budget, HoldPart
from billing.services.funds.budgets import budget_settings as services
from billing.services.funds.budgets.budget_balances import BudgetBalance, budget_balances
from billing.services.rating import spend
from billing.services.rating.spend import LeaseCost
from tenants.models import Project
from tenants.services.authentication import require
from tenants.services.errors import InvalidValue, ObjectNotFound, ProblemError
from web.portal.budgets import budget_alerts
from web.portal.confirmation import ActionConfirmation, confirmation_page
from web.portal.page_context import GET_OR_POST, PageRequest, tenant_page

MAX_BUDGETS = 200
MAX_HOLDS = 20


@dataclass(frozen=True)
class BudgetRow:
    """One budget with its current amounts, and whether the visitor may change it."""

    balance: BudgetBalance
    above: str  # the names of the projects above it
    may_set: bool

    @property
    def used_minor(self) -> int:
        return self.balance.spent + self.balance.held

    @property
    def marks(self) -> list[int]:
        """Return every threshold at which an alert is sent or leases stop, ascending."""
        terms = self.balance.budget.terms
        stops = (terms.stop_new_at, terms.stop_idle_at, terms.stop_all_at)
        return sorted({*terms.thresholds, *terms.forecast_thresholds, *filter(None, stops)})

    @property
    def label(self) -> str:
        one = self.balance
        texts = (Money(minor, one.budget.currency) for minor in (one.spent, one.forecast, one.held, one.limit))
        marks = _("; marks at {marks} %").format(marks=format_percents(self.marks)) if self.marks else ""
        return _("{} spent, {} forecast, {} reserved of {}").format(*texts) + marks

    @property
    def acts(self) -> list[str]:
        """Return in words what happens at each threshold."""
        terms = self.balance.budget.terms
        if terms.stop_new_at is None:
            texts = ["notify only"]
        elif terms.stop_new_at == 100:
            texts = [_("blocks new leases")]
        else:
            texts = [_("blocks new leases at {stop_new_at} %").format(stop_new_at=terms.stop_new_at)]
        if terms.stop_idle_at is not None:
            texts.append(_("ends idle leases at {stop_idle_at} %").format(stop_idle_at=terms.stop_idle_at))
        if terms.stop_all_at is not None:
            texts.append(
                _("ends all leases at {stop_all_at} %, {grace_minutes} min after an e-mail").format(
                    stop_all_at=terms.stop_all_at, grace_minutes=terms.grace_minutes
                )
            )
        return texts


@dataclass(frozen=True)
class BudgetHold:
    """What one lease holds of a budget this month and its charges, in minor units."""

    part: HoldPart
    charged: int
    held: int


STOP_CHOICES = (
    {"value": "hard", "label": gettext_lazy("Block new leases")},
    {"value": "soft", "label": gettext_lazy("Notify only")},
)


@tenant_page("budgets.read", methods=GET_OR_POST)
def list_budgets(request: PageRequest) -> HttpResponse:
    """List the budgets on, above and below the open project; a POST sets one."""
    wrong, status = dict[str, str](), 200
    rows = _budget_rows(request)
    form = _initial_form(rows, request.GET.get("of", ""), request.project.pk)
    if request.method == "POST":
        form |= {name: request.POST[name][:60] for name in form if name in request.POST and name != "open"}
        form["project"] = request.POST.get("project", "")
        try:
            return _set_budget(request, form)
        except ProblemError as refusal:
            if refusal.status in (403, 404):
                raise
            field = getattr(refusal, "field", "") or "limit"
            wrong, status = {str(field): f"{refusal.detail} {refusal.fix.text}"}, 400
    page = build_budget_page(request, rows, form, wrong)
    return render(request, "budgets/budgets.html", {"page": page}, status=status)


@dataclass(frozen=True, slots=True)
class BudgetPage:
    """The budgets on, above and below a project, with the form that sets one."""

    rows: list[BudgetRow]
    notes: list[dict[str, str]]
    alerts: list[budget_alerts.BudgetAlertRow]
    holders: list[BudgetHold]  # largest holds of the first budget
    projects: list[Project]
    form: dict[str, Any]
    wrong: dict[str, str]
    month: datetime

    how = STOP_CHOICES

    @property
    def held_of(self) -> str:
        return self.rows[0].balance.budget.project.name if self.rows else ""


def build_budget_page(
    request: PageRequest, rows: list[BudgetRow], form: dict[str, Any], wrong: dict[str, str]
) -> BudgetPage:
    """Read what the budgets page shows beside its rows and its form."""
    return BudgetPage(
        rows=rows,
        notes=budget_alerts.budget_notices(request),
        alerts=budget_alerts.latest_alerts(request),
        holders=_largest_holds(rows[0].balance.budget, request) if rows else [],
        projects=[project for project in request.projects if services.may_set_budget(request.roles, project)],
        form=form,
        wrong=wrong,
        month=request.now.astimezone(ZoneInfo(request.tenant.time_zone)),
    )


def _initial_form(rows: list[BudgetRow], of: str, project: str) -> dict[str, Any]:
    """Return the form's initial values: a new budget, or the one to be changed."""
    known = next((row.balance.budget for row in rows if row.balance.budget.pk == of and row.may_set), None)
    terms = known.terms if known else BudgetTerms()
    return {
        "open": known is not None,
        "project": known.project_id if known else project,
        "limit": format_fixed_point(known.limit_minor, exponent_of(known.currency)) if known else "",
        "thresholds": format_percents(terms.thresholds),
        "forecast_thresholds": format_percents(terms.forecast_thresholds),
        "kind": "soft" if terms.stop_new_at is None else "hard",
        "stop_new_at": "" if terms.stop_new_at is None else str(terms.stop_new_at),
        "stop_idle_at": "" if terms.stop_idle_at is None else str(terms.stop_idle_at),
        "stop_all_at": "" if terms.stop_all_at is None else str(terms.stop_all_at),
        "grace_minutes": str(terms.grace_minutes),
    }


@tenant_page("budgets.write", methods=GET_OR_POST)
def remove_budget(request: PageRequest, pk: str) -> HttpResponse:
    """Remove a budget, after a confirmation page."""
    rows = Budget.objects.select_related("project").filter(tenant=request.tenant, pk=pk)
    found = rows.filter(project__in=[each.pk for each in request.projects]).first()
    if found is None:
        raise ObjectNotFound(_("This budget does not exist."), fix=_("Choose one from the list of budgets."))
    services.require_may_set_budget(request.roles, found.project)
    if request.method != "POST":
        title = _("Remove the budget of {name}?").format(name=found.project.name)
        effect = _(
            "Its monthly limit of {limit} no longer blocks leases, alerts or ends any. Budgets of parent projects"
            " still apply."
        ).format(limit=Money(found.limit_minor, found.currency))
        page = ActionConfirmation(title, _("Remove budget"), reverse("budgets"), (effect,))
        return confirmation_page(request, page)
    services.remove_budget(found, actor=request.actor, now=request.now)
    messages.success(
        request,
        _("{project_name} no longer has its own budget; budgets of parent projects still apply.").format(
            project_name=found.project.name
        ),
    )
    return redirect("budgets")


def _set_budget(request: PageRequest, form: dict[str, Any]) -> HttpResponse:
    project = next((each for each in request.projects if each.pk == form["project"]), None)
    if project is None:
        require(request.roles, "budgets.write", request.project.path)
        raise InvalidValue("project", _("This project does not exist."), fix=_("Choose one from the list."))
    services.require_may_set_budget(request.roles, project)
    try:
        limit = parse_amount(form["limit"], request.tenant.currency)
    except InvalidAmount as error:
        raise InvalidValue("limit", str(error), fix=_("Enter an amount such as 500.00.")) from error
    terms = _parse_terms(form) if "thresholds" in request.POST else None
    budget = services.set_budget(project=project, limit_minor=limit, actor=request.actor, now=request.now, terms=terms)
    messages.success(
        request,
        _("The monthly budget of {project_name} is {amount}.").format(
            project_name=project.name, amount=Money(budget.limit_minor, budget.currency)
        ),
    )
    return redirect("budgets")


def _parse_terms(form: dict[str, Any]) -> BudgetTerms:
    """Parse the thresholds from the form; raise InvalidValue with the field's name."""
    try:
        return BudgetTerms(
            thresholds=parse_percents(form["thresholds"], "thresholds"),
            forecast_thresholds=parse_percents(form["forecast_thresholds"], "forecast_thresholds"),
            stop_new_at=None if form["kind"] == "soft" else _parse_threshold(form, "stop_new_at", empty=100),
            stop_idle_at=_parse_threshold(form, "stop_idle_at"),
            stop_all_at=_parse_threshold(form, "stop_all_at"),
            grace_minutes=parse_percent(form["grace_minutes"] or "0", "grace_minutes"),
        )
    except InvalidBudgetTerms as error:
        raise InvalidValue(error.field, str(error), fix=_("Enter whole numbers such as 80.")) from error


def _parse_threshold(form: dict[str, Any], field: str, *, empty: int | None = None) -> int | None:
    return parse_percent(form[field], field) if form[field].strip() else empty


def _budget_rows(request: PageRequest) -> list[BudgetRow]:
    """Return budgets on, above and below the open project, root first."""
    names = {each.pk: each.name for each in request.projects}  # other projects are not named
    here = request.project
    near = [each.pk for each in request.projects if here.pk in each.path or each.pk in here.path]
    wanted = Budget.objects.filter(tenant=request.tenant, project__in=near)
    found = list(wanted.select_related("project").order_by("project__path")[:MAX_BUDGETS])
    return [
        BudgetRow(
            one,
            above=" / ".join(names[key] for key in one.budget.project.path[:-1] if key in names),
            may_set=services.may_set_budget(request.roles, one.budget.project),
        )
        for one in budget_balances(found, tenant=request.tenant, now=request.now)
    ]


def _largest_holds(budget: Budget, request: PageRequest) -> list[BudgetHold]:
    """Return the leases that hold most of a budget this month; two queries.

    What they are charged includes running time to this second; the rest of what they reserved is held.
    """
    now, month = request.now, month_of(request.tenant.time_zone, request.now)
    parts = HoldPart.objects.filter(month__budget=budget, month__period__span__contains=now, num__gt=F("spent_num"))
    largest = parts.select_related("hold__lease__project").order_by(F("spent_num") - F("num"), "pk")
    listed = list(largest[:MAX_HOLDS])
    costs = spend.costs_of([part.hold.lease_id for part in listed], now=now, since=month.start) if listed else {}
    return [_budget_hold(part, costs.get(part.hold.lease_id), exponent_of(budget.currency)) for part in listed]


def _budget_hold(part: HoldPart, cost: LeaseCost | None, places: int) -> BudgetHold:
    charged = cost.minor if cost else 0
    return BudgetHold(part, charged, max(to_minor_up(int(part.num), places) - charged, 0))
