"""Budgets: what each project may cost this month, what is spent and held of it, and by which leases."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.db.models import F
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from billing.domain.money import Money, NotAnAmount, exponent_of, minor_of, to_minor, to_minor_up
from billing.models import Budget, HoldPart
from billing.portal import calls
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
    def kind(self) -> str:
        return "fill bad" if self.standing.spent >= self.standing.limit else "fill"

    @property
    def words(self) -> str:
        one = self.standing
        said = (Money(minor, one.budget.currency) for minor in (one.spent, one.held, one.limit))
        return "{} spent, {} held of {}".format(*said)


@dataclass(frozen=True)
class Holder:
    """What one lease holds of a budget this month, and what of it is charged, in minor units."""

    part: HoldPart
    charged: int
    held: int


@require_http_methods(["GET", "POST"])
@page("budgets.read")
def budgets(request: PageRequest) -> HttpResponse:
    """List the budgets of the open project, below it and above it; a POST sets one."""
    form = {"project": request.project.pk, "limit": "", "error": ""}
    if request.method == "POST":
        form |= {"project": request.POST.get("project", ""), "limit": request.POST.get("limit", "")[:20]}
        try:
            return _set(request, str(form["project"]), str(form["limit"]))
        except Refused as refusal:
            if refusal.status in (403, 404):
                raise
            form["error"] = f"{refusal.detail} {refusal.fix.text}"
    rows = _rows(request)
    may = [project for project in request.projects if services.may_set(request.roles, project)]
    shown = {
        "rows": rows,
        "holders": _holders(rows[0].standing.budget, request.now) if rows else [],
        "held_of": rows[0].standing.budget.project.name if rows else "",
        "projects": may,
        "form": form,
        "month": request.now.astimezone(ZoneInfo(request.tenant.time_zone)),
        "project": request.project,
        "currency": request.tenant.currency,
        "now": request.now,
        "call": calls.get("/budgets?limit=500"),
        "call_set": calls.post("/budgets", {"project": request.project.pk, "limit": "500.00"}),
        "call_holds": calls.get("/holds?limit=500"),
    }
    return render(request, "billing/budgets.html", shown, status=400 if form["error"] else 200)


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


def _set(request: PageRequest, project_id: str, text: str) -> HttpResponse:
    project = next((each for each in request.projects if each.pk == project_id), None)
    if project is None:
        require(request.roles, "budgets.write", request.project.path)
        raise Invalid("project", "There is no such project here.", fix="Choose one of the list.")
    services.must_lead_above(request.roles, project)
    try:
        limit = minor_of(text, request.tenant.currency)
    except NotAnAmount as odd:
        raise Invalid("limit", str(odd), fix="Type an amount such as 500.00.") from odd
    budget = services.set_limit(project=project, limit_minor=limit, actor=request.actor, now=request.now)
    messages.success(
        request, f"{project.name} may cost {Money(budget.limit_minor, budget.currency)} a month."
    )
    return redirect("budgets")


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
