"""Home page: running and waiting leases, spend, and what needs attention."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from django.db.models import BooleanField, Case, Count, Q, Value, When
from django.db.models.functions import Coalesce
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.services.catalogue import price_list
from broker.domain.lifecycle.states import LeaseState
from broker.models import Relocation
from broker.services.leases import relocation_consent
from tenants.models import ApiToken, Member
from web.http.query_strings import chosen_value, link_options
from web.portal import api_examples
from web.portal.budgets import budget_alerts
from web.portal.home import recent_events
from web.portal.layout import usage_meters
from web.portal.leases.end_notices import EndNotice, end_notices_of
from web.portal.leases.lease_table import ENDS_SOON, LeaseRow, lease_rows, prefetch_for_rows
from web.portal.page_context import PageRequest, may_in_project, tenant_page
from web.portal.queue.suggestions import StartNowSuggestion, start_now_suggestions

MAX_LEASES = 20
MAX_RELOCATIONS = 5  # upcoming relocations shown
S = LeaseState


@tenant_page("leases.read")
def show_home(request: PageRequest) -> HttpResponse:
    return render(request, "home/home.html", {"page": build_home_page(request)})


@dataclass(frozen=True)
class ChecklistItem:
    """One item of a new tenant's checklist."""

    title: str
    detail: str
    url: str
    done: bool


@dataclass(frozen=True, slots=True)
class HomePage:
    """Running and waiting leases of a project, its spend, and what needs attention."""

    rows: list[LeaseRow]
    requester_options: list[dict[str, Any]]
    hidden_leases: int
    states: Counter[LeaseState]
    relocations: list[Relocation]
    end_notices: list[EndNotice]
    longest_waiting: list[LeaseRow]
    suggestions: list[StartNowSuggestion]
    budget_notices: list[dict[str, str]]
    events: list[recent_events.RecentEvent]
    month_spend: usage_meters.MonthSpend
    quotas: list[usage_meters.QuotaBar]
    may_write: bool
    call: str
    first_steps: list[ChecklistItem]  # empty once the project has had a lease
    lowest_price: int | None  # of on-demand offerings, while no lease is shown

    @property
    def ending_next(self) -> LeaseRow | None:
        return soonest_end(self.rows)

    @property
    def also_waiting(self) -> int:
        return self.states[S.QUEUED] - 1


def build_home_page(request: PageRequest) -> HomePage:
    """Read what the home page of the open project shows."""
    live = request.scope.leases().live()
    counts = Counter({(s, mine): n for s, mine, n in count_live_leases(request)})
    states = Counter({state: sum(n for (s, _), n in counts.items() if s == state) for state in S})
    request.scope.known["live"] = states
    whose = chosen_value(request, "whose", ["all"], "mine" if any(mine for _, mine in counts) else "all")
    listed = live.filter(requested_by=request.actor.id) if whose == "mine" else live
    shown = lease_rows(
        prefetch_for_rows(listed.order_by("-pk"))[:MAX_LEASES], currency=request.tenant.currency, now=request.now
    )
    longest = longest_waiting(request) if states[S.QUEUED] else []
    bars = usage_meters.quota_bars(request.project, now=request.now, currency=request.tenant.currency)
    return HomePage(
        rows=shown,
        requester_options=whose_options(request, counts, whose),
        hidden_leases=sum(n for (_, mine), n in counts.items() if mine or whose == "all") - len(shown),
        states=states,
        relocations=list(relocation_consent.upcoming_relocations(listed)[:MAX_RELOCATIONS]),
        end_notices=end_notices_of(listed, now=request.now),
        longest_waiting=longest,
        suggestions=next(iter(start_now_suggestions(request, longest)), []),
        budget_notices=budget_alerts.budget_notices(request),
        events=recent_events.recent_events(request.scope, money=request.roles.may("billing.read", ())),
        month_spend=usage_meters.month_meter(request, bars),
        quotas=bars,
        may_write=may_in_project(request, "leases.write"),
        call=api_examples.curl_list(
            "/leases",
            request.scope,
            state=",".join(state.value for state in S if state != S.RELEASED),
            requested_by="me" if whose == "mine" else "",
            limit=MAX_LEASES,
        ),
        first_steps=[] if counts or request.scope.leases().exists() else first_steps_checklist(request),
        lowest_price=None if shown else lowest_price(request),
    )


def lowest_price(request: PageRequest) -> int | None:
    """Return what the cheapest on-demand offering costs the tenant per hour."""
    tenant = request.tenant
    return price_list.lowest_on_demand_price(request.now, currency=tenant.currency, tenant=tenant.pk)


def count_live_leases(request: PageRequest) -> list[tuple[str, bool, int]]:
    """Count live leases by state, the visitor's own apart; one query."""
    found = request.scope.leases().live().annotate(mine=is_mine(request)).values_list("state", "mine").order_by()
    return list(found.annotate(Count("pk")))


def longest_waiting(request: PageRequest) -> list[LeaseRow]:
    """Return the queued lease that has waited longest, the visitor's own first."""
    due = Q(requeued_at=None) | Q(requeued_at__lte=request.now)
    queued = request.scope.leases().filter(due, state=S.QUEUED.value)
    own_first = queued.annotate(mine=is_mine(request)).order_by("-mine", Coalesce("requeued_at", "created_at"), "pk")
    return lease_rows(prefetch_for_rows(own_first)[:1], currency=request.tenant.currency, now=request.now)


def is_mine(request: PageRequest) -> Case:
    own = When(requested_by=request.actor.id, then=Value(True))
    return Case(own, default=Value(False), output_field=BooleanField())


def whose_options(request: PageRequest, counts: Counter[tuple[str, bool]], whose: str) -> list[dict[str, Any]]:
    own = sum(n for (_, mine), n in counts.items() if mine)
    choices = link_options(request, "whose", [("mine", _("Mine")), ("all", _("Project"))], whose)
    return [{**choice, "count": n} for choice, n in zip(choices, (own, counts.total()), strict=True)]


def soonest_end(shown: list[LeaseRow]) -> LeaseRow | None:
    """Return the lease that will stop first, if it stops soon."""
    near = [row for row in shown if row.ends_soon]
    return min(near, key=lambda row: row.remaining_time or ENDS_SOON, default=None)


def first_steps_checklist(request: PageRequest) -> list[ChecklistItem]:
    """Return the checklist of a project that never had a lease; two queries."""
    people = Member.objects.filter(tenant=request.tenant)
    tokens = ApiToken.objects.filter(tenant=request.tenant)
    if request.roles.projects("members.read") is not None:
        people = people.filter(project__in=request.projects)
    if not request.roles.may("tokens.all"):
        tokens = tokens.filter(user_id=request.actor.id)
    team, token = people.count() > 1, tokens.exists()
    return [
        ChecklistItem(
            _("Launch your first slice"), _("Billed per second, only while running."), reverse("launch"), False
        ),
        ChecklistItem(
            _("Create an API token"), _("For the command line and for automation."), reverse("tokens"), token
        ),
        ChecklistItem(
            _("Invite your team"), _("Assign each member a role on the tenant or a project."), reverse("team"), team
        ),
    ]
