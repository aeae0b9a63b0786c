"""Leases of all tenants, for operators: filtered by tenant, state and words, newest first."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.models.leases import LeaseQuerySet
from tenants.models import Tenant
from web.http import downloads
from web.http.query_strings import LinkOption, chosen_value, link_options, page_url
from web.portal.actions import operator_api_call
from web.portal.operators.page_context import OperatorRequest, operator_page

PAGE_SIZE, MAX_CSV_ROWS, MAX_WORDS = 40, 20_000, 120
S = LeaseState
TABS: dict[str, tuple[str, tuple[LeaseState, ...]]] = {
    "live": (gettext_noop("Live"), tuple(state for state in S if state != S.RELEASED)),
    "active": (gettext_noop("Active"), (S.ACTIVE,)),
    "queued": (gettext_noop("Queued"), (S.QUEUED,)),
    "ended": (gettext_noop("Ended"), (S.RELEASED,)),
    "all": (gettext_noop("All"), tuple(S)),
}
CSV_HEADERS = ["lease", "name", "tenant", "tenant_name", "project", "offering", "price_class", "quantity", "state",
               "created_at", "active_at", "ends_at", "ended_at", "end_reason", "requested_by"]  # fmt: skip


@operator_page("leases")
def list_leases(request: OperatorRequest) -> HttpResponse:
    """List leases of all tenants, or of one."""
    tab = chosen_value(request, "state", TABS, "live")
    found = filtered_leases(request, tab)
    if request.GET.get("format") == "csv":
        return downloads.csv_response("leases", CSV_HEADERS, csv_rows(found))
    return render(request, "operators/leases/leases.html", {"page": build_lease_list(request, tab, found)})


@dataclass(frozen=True, slots=True)
class OperatorLeaseList:
    """One page of the leases that match the filters."""

    rows: list[Lease]
    tabs: list[LinkOption]
    tenant: Tenant | None
    all_tenants: str  # the URL without the tenant
    query: str
    state: str
    older: str
    newest: str
    csv: str
    now: datetime
    calls: list[dict[str, str]]


def build_lease_list(request: OperatorRequest, tab: str, found: LeaseQuerySet) -> OperatorLeaseList:
    """Read one page of the filtered leases."""
    before = text_of(request, "cursor")
    beneath = found.filter(pk__lt=before) if before else found
    listed = list(beneath.select_related("tenant", "project", "offering").order_by("-pk")[: PAGE_SIZE + 1])
    here = page_url(request)
    older = f"{here}{'&' if '?' in here else '?'}cursor={listed[PAGE_SIZE - 1].pk}" if len(listed) > PAGE_SIZE else ""
    tenant, states = text_of(request, "tenant"), TABS[tab][1]
    return OperatorLeaseList(
        rows=listed[:PAGE_SIZE],
        tabs=link_options(request, "state", [(value, _(label)) for value, (label, _states) in TABS.items()], tab),
        tenant=Tenant.objects.filter(pk=tenant).first() if tenant else None,
        all_tenants=page_url(request, tenant=None),
        query=text_of(request, "q"),
        state=tab,
        older=older,
        newest=here if before else "",
        csv=page_url(request, format="csv"),
        now=request.now,
        calls=[
            operator_api_call(
                _("Leases of all tenants, newest first"),
                "ops/leases",
                tenant=tenant,
                state="" if tab == "all" else ",".join(state.value for state in states),
                q=text_of(request, "q"),
                limit=PAGE_SIZE,
            )
        ],
    )


def filtered_leases(request: OperatorRequest, tab: str) -> LeaseQuerySet:
    """Return the leases that match the filters in the query string."""
    states = [state.value for state in TABS[tab][1]]
    found = Lease.objects.all() if tab == "all" else Lease.objects.filter(state__in=states)
    if tab not in ("all", "ended"):
        found = found.filter(ended_at=None)  # has an index
    if tenant := text_of(request, "tenant"):
        found = found.filter(tenant=tenant)
    if words := text_of(request, "q"):
        found = found.filter(Q(name__icontains=words) | Q(pk=words) | Q(tenant__name__icontains=words))
    return found


def text_of(request: OperatorRequest, name: str) -> str:
    """Return a text of the query string as it may be searched for."""
    return request.GET.get(name, "").replace("\x00", "").strip()[:MAX_WORDS]


def csv_rows(found: LeaseQuerySet) -> Iterable[list[Any]]:
    """Return the rows of the CSV, newest first."""
    for lease in found.select_related("tenant", "project", "offering").order_by("-pk")[:MAX_CSV_ROWS]:
        times = [
            at.isoformat() if at else "" for at in (lease.created_at, lease.active_at, lease.ends_at, lease.ended_at)
        ]
        yield [lease.pk, lease.name, lease.tenant_id, lease.tenant.name, lease.project.name, lease.offering.label,
               lease.offering.price_class, lease.quantity, lease.state, *times, lease.end_reason,
               lease.requested_by_label]  # fmt: skip
