"""Budgets: what each project may cost this month, what is spent and held of it, and by which leases."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.db.models import F
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from billing.domain.money import Money, NotAnAmount, exponent_of, fixed_point, minor_of, to_minor, to_minor_up
from billing.domain.watching import NotTerms, Terms, share, shares, written
from billing.models import Budget, HoldPart
from billing.portal import calls, told
from billing.portal.pages import PageRequest, page
from billing.services.funds import budgets as services
from billing.services.funds.standings import Standing, standing
from tenants.services.permissions import require
from tenants.services.refusals import Invalid, Missing, Refused

SHOWN = 200
HOLDERS = 20


@dataclass(frozen=True)
class Row:
    """One budget, as it stands, and who may change it."""

    standing: Standing
    above: str  # the names of the projects that it lies below
    may_set: bool

    @property
    def taken(self) -> int:
        return self.standing.spent + self.standing.held

    @property
    def marks(self) -> list[int]:
        """Every share at which somebody is told or something happens, in order."""
        terms = self.standing.budget.terms
        stops = (terms.stop_new_at, terms.stop_idle_at, terms.stop_all_at)
        return sorted({*terms.thresholds, *terms.forecast_thresholds, *filter(None, stops)})

    @property
    def words(self) -> str:
        one = self.standing
        said = (Money(minor, one.budget.currency) for minor in (one.spent, one.forecast, one.held, one.limit))
        marks = f"; marks at {written(self.marks)} %" if self.marks else ""
        return "{} spent, {} forecast, {} held of {}".format(*said) + marks

    @property
    def acts(self) -> list[str]:
        """What happens at which share, in words."""
        terms = self.standing.budget.terms
        if terms.stop_new_at is None:
            said = ["soft: leases begin beyond it"]
        elif terms.stop_new_at == 100:
            said = ["no lease begins beyond it"]
        else:
            said = [f"no lease begins beyond {terms.stop_new_at} %"]
        if terms.stop_idle_at is not None:
            said.append(f"idle leases end at {terms.stop_idle_at} %")
        if terms.stop_all_at is not None:
            said.append(f"all ends at {terms.stop_all_at} %, {terms.grace_minutes} min after a letter")
        return said


@dataclass(frozen=True)
class Holder:
    """What one lease holds of a budget this month, and what of it is charged, in minor units."""

    part: HoldPart
    charged: int
    held: int


HOW = ({"value": "hard", "label": "Stops new leases"}, {"value": "soft", "label": "Only tells"})


@require_http_methods(["GET", "POST"])
@page("budgets.read")
def budgets(request: PageRequest) -> HttpResponse:
    """List the budgets of the open project, below it and above it; a POST sets one."""
    wrong, status = dict[str, str](), 200
    rows = _rows(request)
    form = _form(rows, request.GET.get("of", ""), request.project.pk)
    if request.method == "POST":
        form |= {name: request.POST[name][:60] for name in form if name in request.POST and name != "open"}
        form["project"] = request.POST.get("project", "")
        try:
            return _set(request, form)
        except Refused as refusal:
            if refusal.status in (403, 404):
                raise
            field = getattr(refusal, "field", "") or "limit"
            wrong, status = {str(field): f"{refusal.detail} {refusal.fix.text}"}, 400
    may = [project for project in request.projects if services.may_set(request.roles, project)]
    shown = {
        "rows": rows,
        "notes": told.notes(request),
        "alerts": told.latest(request),
        "holders": _holders(rows[0].standing.budget, request.now) if rows else [],
        "held_of": rows[0].standing.budget.project.name if rows else "",
        "projects": may,
        "form": form,
        "wrong": wrong,
        "how": HOW,
        "month": request.now.astimezone(ZoneInfo(request.tenant.time_zone)),
        "project": request.project,
        "currency": request.tenant.currency,
        "now": request.now,
        "call": calls.get("/budgets?limit=500"),
        "call_set": calls.post("/budgets", {"project": request.project.pk, "limit": "500.00"}),
        "call_holds": calls.get("/holds?limit=500"),
        "call_told": calls.get("/budget-alerts?limit=500"),
        "call_stops": calls.get("/budget-stops?limit=500"),
    }
    return render(request, "billing/budgets.html", shown, status=status)


def _form(rows: list[Row], of: str, project: str) -> dict[str, Any]:
    """Return what the form says before anybody types: a new budget, or the one that is to be changed."""
    known = next((row.standing.budget for row in rows if row.standing.budget.pk == of and row.may_set), None)
    terms = known.terms if known else Terms()
    return {
        "open": known is not None,
        "project": known.project_id if known else project,
        "limit": fixed_point(known.limit_minor, exponent_of(known.currency)) if known else "",
        "thresholds": written(terms.thresholds),
        "forecast_thresholds": written(terms.forecast_thresholds),
        "kind": "soft" if terms.stop_new_at is None else "hard",
        "stop_new_at": "" if terms.stop_new_at is None else str(terms.stop_new_at),
        "stop_idle_at": "" if terms.stop_idle_at is None else str(terms.stop_idle_at),
        "stop_all_at": "" if terms.stop_all_at is None else str(terms.stop_all_at),
        "grace_minutes": str(terms.grace_minutes),
    }


@require_POST
@page("budgets.write")
def remove(request: PageRequest, pk: str) -> HttpResponse:
    """Take a budget away."""
    rows = Budget.objects.select_related("project").filter(tenant=request.tenant, pk=pk)
    found = rows.filter(project__in=[each.pk for each in request.projects]).first()
    if found is None:
        raise Missing("There is no such budget here.", fix="Look it up in the list of budgets.")
    services.must_lead_above(request.roles, found.project)
    services.remove(found, actor=request.actor, now=request.now)
    messages.success(
        request, f"{found.project.name} has no budget of its own any longer; those above it still hold."
    )
    return redirect("budgets")


def _set(request: PageRequest, form: dict[str, Any]) -> HttpResponse:
    project = next((each for each in request.projects if each.pk == form["project"]), None)
    if project is None:
        require(request.roles, "budgets.write", request.project.path)
        raise Invalid("project", "There is no such project here.", fix="Choose one of the list.")
    services.must_lead_above(request.roles, project)
    try:
        limit = minor_of(form["limit"], request.tenant.currency)
    except NotAnAmount as odd:
        raise Invalid("limit", str(odd), fix="Type an amount such as 500.00.") from odd
    terms = _terms(form) if "thresholds" in request.POST else None
    budget = services.set_limit(
        project=project, limit_minor=limit, actor=request.actor, now=request.now, terms=terms
    )
    messages.success(
        request, f"{project.name} may cost {Money(budget.limit_minor, budget.currency)} a month."
    )
    return redirect("budgets")


def _terms(form: dict[str, Any]) -> Terms:
    """Read the shares that were typed, or raise Invalid, which names the field."""
    try:
        return Terms(
            thresholds=shares(form["thresholds"], "thresholds"),
            forecast_thresholds=shares(form["forecast_thresholds"], "forecast_thresholds"),
            stop_new_at=None if form["kind"] == "soft" else _share(form, "stop_new_at", empty=100),
            stop_idle_at=_share(form, "stop_idle_at"),
            stop_all_at=_share(form, "stop_all_at"),
            grace_minutes=share(form["grace_minutes"] or "0", "grace_minutes"),
        )
    except NotTerms as odd:
        raise Invalid(odd.field, str(odd), fix="Type whole numbers such as 80.") from odd


def _share(form: dict[str, Any], field: str, *, empty: int | None = None) -> int | None:
    return share(form[field], field) if form[field].strip() else empty


def _rows(request: PageRequest) -> list[Row]:
    """Return what is set on the open project, above it and below it, from the root on."""
    names = {each.pk: each.name for each in request.projects}  # of others nobody hears
    here = request.project
    near = [each.pk for each in request.projects if here.pk in each.path or each.pk in here.path]
    wanted = Budget.objects.filter(tenant=request.tenant, project__in=near)
    found = list(wanted.select_related("project").order_by("project__path")[:SHOWN])
    return [
        Row(
            one,
            above=" / ".join(names[key] for key in one.budget.project.path[:-1] if key in names),
            may_set=services.may_set(request.roles, one.budget.project),
        )
        for one in standing(found, tenant=request.tenant, now=request.now)
    ]


def _holders(budget: Budget, now: datetime) -> list[Holder]:
    """Return the leases that hold most of a budget this month; one query."""
    parts = HoldPart.objects.filter(
        month__budget=budget, month__period__span__contains=now, num__gt=F("spent_num")
    )
    largest = parts.select_related("hold__lease__project").order_by(F("spent_num") - F("num"), "pk")
    return [_holder(part, exponent_of(budget.currency)) for part in largest[:HOLDERS]]


def _holder(part: HoldPart, places: int) -> Holder:
    charged = to_minor(int(part.spent_num), places)
    return Holder(part, charged, to_minor_up(int(part.num), places) - charged)
