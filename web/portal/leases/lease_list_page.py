"""Lease list of the open project: filtered, paged, or whole as CSV."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from billing.domain.money import decimal_string
from broker.domain.lifecycle.states import LeaseState, PriceClass
from broker.models.leases import LeaseQuerySet
from web.http import downloads
from web.http.query_strings import chosen_value, filter_chip, link_options, page_url
from web.portal import api_examples
from web.portal.leases.lease_table import LeaseRow, burn_rate_of, lease_rows, prefetch_for_rows
from web.portal.page_context import PageRequest, may_in_project, tenant_page

PAGE_SIZE = 30
MAX_CSV_ROWS = 20_000
S = LeaseState
TABS: dict[str, tuple[str, frozenset[LeaseState]]] = {
    "": (gettext_noop("Live"), frozenset(S) - {S.RELEASED}),
    "active": (gettext_noop("Active"), frozenset({S.ACTIVE})),
    "waiting": (gettext_noop("Waiting"), frozenset({S.REQUESTED, S.QUEUED, S.PROVISIONING})),
    "over": (gettext_noop("Released"), frozenset({S.RELEASED})),
    "all": (gettext_noop("All"), frozenset(S)),
}
PRICE_CLASS_CHOICES = [(PriceClass.ON_DEMAND.value, "on-demand"), (PriceClass.SPOT.value, "spot")]
CSV_HEADERS = ["id", "name", "project", "offering", "price_class", "quantity", "state", "created_at", "active_at",
         "ended_at", "end_reason", "charged_seconds", "amount", "currency"]  # fmt: skip


@tenant_page("leases.read")
def list_leases(request: PageRequest) -> HttpResponse:
    tab = chosen_value(request, "state", TABS)
    found = filtered_leases(request, tab)
    if request.GET.get("format") == "csv":
        return downloads.csv_response("leases", CSV_HEADERS, csv_rows(request, found))
    page = build_lease_list_page(request, tab, found)
    return render(request, "leases/leases.html", {"page": page})


@dataclass(frozen=True, slots=True)
class LeaseListPage:
    """One page of the leases that match the filters."""

    rows: list[LeaseRow]
    tabs: list[dict[str, Any]]
    filters: list[dict[str, Any]]
    query: str
    older: str
    newest: str
    csv: str
    may_write: bool
    call: str

    @property
    def none_yet(self) -> bool:
        return not self.tabs[-1]["count"]

    @property
    def burn_rate(self) -> int | None:
        """Return what the leases of this page cost per hour."""
        return burn_rate_of(self.rows)


def build_lease_list_page(request: PageRequest, tab: str, found: LeaseQuerySet) -> LeaseListPage:
    """Read one page of the filtered leases, newest first."""
    before = request.GET.get("cursor", "")
    beneath = found.filter(pk__lt=before) if before else found
    listed = list(prefetch_for_rows(beneath.order_by("-pk"))[: PAGE_SIZE + 1])
    here = page_url(request)
    older = f"{here}{'&' if '?' in here else '?'}cursor={listed[PAGE_SIZE - 1].pk}" if len(listed) > PAGE_SIZE else ""
    return LeaseListPage(
        rows=lease_rows(listed[:PAGE_SIZE], currency=request.tenant.currency, now=request.now),
        tabs=state_tabs(request, tab),
        filters=[
            filter_chip(request, "class", _("Class"), PRICE_CLASS_CHOICES),
            filter_chip(request, "by", _("Requested by"), [("me", "me")]),
        ],
        query=request.GET.get("q", ""),
        older=older,
        newest=here if before else "",
        csv=page_url(request, format="csv"),
        may_write=may_in_project(request, "leases.write"),
        call=leases_call(request, tab),
    )


def leases_call(request: PageRequest, tab: str) -> str:
    """Return the API call that lists the same leases, newest first."""
    states = TABS[tab][1]
    return api_examples.curl_list(
        "/leases",
        request.scope,
        state="" if len(states) == len(S) else ",".join(state.value for state in S if state in states),
        price_class=chosen_value(request, "class", dict(PRICE_CLASS_CHOICES)),
        requested_by=chosen_value(request, "by", ["me"]),
        q=request.GET.get("q", "").strip()[:120],
        limit=PAGE_SIZE,
    )


def filtered_leases(request: PageRequest, tab: str) -> LeaseQuerySet:
    """Return the leases that match the filters in the query string."""
    found = request.scope.leases().filter(state__in=[state.value for state in TABS[tab][1]])
    if chosen_value(request, "class", dict(PRICE_CLASS_CHOICES)):
        found = found.filter(offering__price_class=request.GET["class"])
    if chosen_value(request, "by", ["me"]):
        found = found.filter(requested_by=request.actor.id)
    if words := request.GET.get("q", "").strip()[:120]:
        found = found.filter(Q(name__icontains=words) | Q(pk=words) | Q(offering__label__icontains=words))
    return found


def state_tabs(request: PageRequest, tab: str) -> list[dict[str, Any]]:
    """Return the tabs with their counts; one query."""
    counted = dict(request.scope.leases().values_list("state").annotate(Count("pk")).order_by())
    request.scope.known["live"] = {state: n for state, n in counted.items() if state != S.RELEASED.value}
    choices = link_options(request, "state", [(value, _(label)) for value, (label, _states) in TABS.items()], tab)
    return [
        {**option, "count": sum(counted.get(state.value, 0) for state in states)}
        for option, (_label, states) in zip(choices, TABS.values(), strict=True)
    ]


def csv_rows(request: PageRequest, found: LeaseQuerySet) -> Iterable[list[object]]:
    """Return the rows of the CSV."""
    listed = lease_rows(
        prefetch_for_rows(found.order_by("-pk"))[:MAX_CSV_ROWS], currency=request.tenant.currency, now=request.now
    )
    return [lease_cells(row) for row in listed]


def lease_cells(row: LeaseRow) -> list[object]:
    lease = row.lease
    times = [at.isoformat() if at else "" for at in (lease.created_at, lease.active_at, lease.ended_at)]
    return [lease.pk, lease.name, lease.project.name, lease.offering.label, lease.offering.price_class,
            lease.quantity, lease.state, *times, lease.end_reason, row.cost.seconds,
            decimal_string(row.cost.minor, row.currency), row.currency]  # fmt: skip
