"""Home: what runs, what waits, what it costs, and what needs you."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.db.models import BooleanField, Case, Count, Value, When
from django.db.models.functions import Coalesce
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from billing.portal import calls, events, meters, told
from billing.portal.addresses import chosen, options
from billing.portal.pages import PageRequest, may, page
from billing.portal.rows import SOON, Row, loaded, rows
from billing.portal.suggestions import instead
from broker.domain.states import LeaseState
from broker.services.leases import allowing
from tenants.models import ApiToken, Member

SHOWN = 20
MOVES = 5  # told of at once
S = LeaseState


@require_GET
@page("leases.read")
def home(request: PageRequest) -> HttpResponse:
    live = request.scope.leases().live()
    counts = Counter({(s, mine): n for s, mine, n in counted(request)})
    states = Counter({state: sum(n for (s, _), n in counts.items() if s == state) for state in S})
    request.scope.known["live"] = states
    whose = chosen(request, "whose", ["all"], "mine" if any(mine for _, mine in counts) else "all")
    listed = live.filter(requested_by=request.actor.id) if whose == "mine" else live
    shown = rows(loaded(listed.order_by("-pk"))[:SHOWN], currency=request.tenant.currency, now=request.now)
    queued = sum(n for (state, _), n in counts.items() if state == S.QUEUED)
    waiting = first_in_line(request) if queued else []
    bars = meters.quotas(request.project, now=request.now, currency=request.tenant.currency)
    context: dict[str, Any] = {
        "rows": shown,
        "now": request.now,
        "whose": seg(request, counts, whose),
        "hidden": sum(n for (_, mine), n in counts.items() if mine or whose == "all") - len(shown),
        "states": states,
        "soon": soonest(shown),
        "moves": list(allowing.moves_ahead(listed)[:MOVES]),
        "waiting": waiting,
        "also_waiting": queued - 1,
        "instead": next(iter(instead(request, waiting)), []),
        "notes": told.notes(request),
        "events": events.recent(request.scope, money=request.roles.may("billing.read", ())),
        "month": meters.month(request, bars),
        "quotas": bars,
        "may_write": may(request, "leases.write"),
        "project": request.project,
        "call": calls.listing(
            "/leases",
            request.scope,
            state=",".join(state.value for state in S if state != S.RELEASED),
            requested_by="me" if whose == "mine" else "",
            limit=SHOWN,
        ),
    }
    if not counts and not request.scope.leases().exists():
        context["first"] = first_steps(request)
    return render(request, "billing/home.html", context)


def counted(request: PageRequest) -> list[tuple[str, bool, int]]:
    """Count what is live by state, the visitor's own apart; one query."""
    found = (
        request.scope.leases()
        .live()
        .annotate(mine=mine_first(request))
        .values_list("state", "mine")
        .order_by()
    )
    return list(found.annotate(Count("pk")))


def first_in_line(request: PageRequest) -> list[Row]:
    """Return what has waited longest, the visitor's own before others'."""
    queued = request.scope.leases().filter(state=S.QUEUED.value)
    own_first = queued.annotate(mine=mine_first(request)).order_by(
        "-mine", Coalesce("waits_since", "created_at"), "pk"
    )
    return rows(loaded(own_first)[:1], currency=request.tenant.currency, now=request.now)


def mine_first(request: PageRequest) -> Case:
    own = When(requested_by=request.actor.id, then=Value(True))
    return Case(own, default=Value(False), output_field=BooleanField())


def seg(request: PageRequest, counts: Counter[tuple[str, bool]], whose: str) -> list[dict[str, Any]]:
    own = sum(n for (_, mine), n in counts.items() if mine)
    choices = options(request, "whose", [("mine", "Mine"), ("all", "Project")], whose)
    return [{**choice, "count": n} for choice, n in zip(choices, (own, counts.total()), strict=True)]


def soonest(shown: list[Row]) -> Row | None:
    """Return the lease that will stop first, if that is soon enough to be news."""
    near = [row for row in shown if row.soon]
    return min(near, key=lambda row: row.left or SOON, default=None)


@dataclass(frozen=True)
class Step:
    """One of the few things that a new tenant does first."""

    word: str
    why: str
    url: str
    done: bool


def first_steps(request: PageRequest) -> list[Step]:
    """Return the checklist of a project that has never had a lease, by what its visitor can see; two queries."""
    people = Member.objects.filter(tenant=request.tenant)
    tokens = ApiToken.objects.filter(tenant=request.tenant)
    if request.roles.projects("members.read") is not None:
        people = people.filter(project__in=request.projects)
    if not request.roles.may("tokens.all"):
        tokens = tokens.filter(user_id=request.actor.id)
    team, token = people.count() > 1, tokens.exists()
    return [
        Step(
            "Launch the first slice",
            "It is charged by the second, from ready to the end.",
            reverse("launch"),
            False,
        ),
        Step("Make an API token", "For the command line and for automation.", reverse("tokens"), token),
        Step("Invite your team", "Each with a role, on the tenant or on one project.", reverse("team"), team),
    ]
