"""Leases of all tenants, for operators: filtered by tenant, state, days and words, newest first."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from web.portal.actions import LIST_PAGE_SIZE, operator_api_call
from web.portal.operators.list_filters import ListFilter
from web.portal.operators.list_specs import ListState, OperatorList
from web.portal.operators.operator_lists import FilteredList, csv_time, read_lists, wants_csv
from web.portal.operators.page_context import OperatorRequest, operator_page

S = LeaseState
# A lease that has not ended is found by an index on `ended_at`.
STATES: tuple[tuple[ListState, tuple[LeaseState, ...]], ...] = (
    (
        ListState("live", gettext_lazy("Live"), Q(ended_at=None) & ~Q(state=S.RELEASED)),
        tuple(state for state in S if state != S.RELEASED),
    ),
    (ListState("active", gettext_lazy("Active"), Q(state=S.ACTIVE, ended_at=None)), (S.ACTIVE,)),
    (ListState("queued", gettext_lazy("Queued"), Q(state=S.QUEUED, ended_at=None)), (S.QUEUED,)),
    (ListState("ended", gettext_lazy("Ended"), Q(state=S.RELEASED)), (S.RELEASED,)),
    (ListState("all", gettext_lazy("All")), ()),
)


def _lease_cells(lease: Lease) -> tuple[object, ...]:
    times = (csv_time(at) for at in (lease.created_at, lease.active_at, lease.ends_at, lease.ended_at))
    return (
        *(lease.pk, lease.name, lease.tenant_id, lease.tenant.name, lease.project.name, lease.offering.label),
        *(lease.offering.price_class, lease.quantity, lease.state, *times, lease.end_reason, lease.requested_by_label),
    )


LEASE_LIST = OperatorList(
    name="leases",
    heads=(
        "lease name tenant tenant_name project offering price_class quantity state created_at active_at "
        "ends_at ended_at end_reason requested_by"
    ),
    cells=_lease_cells,
    tenant="tenant_id",
    at="created_at",
    states=tuple(state for state, _states in STATES),
    search=("name", "pk", "tenant__name"),
)


@operator_page("leases")
def list_leases(request: OperatorRequest) -> Any:
    """List leases of all tenants, or of one."""
    lists = read_lists(request, LEASE_LIST)
    rows = Lease.objects.select_related("tenant", "project", "offering").order_by("-pk")
    if wants_csv(request):
        return lists.csv((LEASE_LIST, lambda: rows))
    states = next(states for state, states in STATES if state.value == lists.filter.state)
    page = OperatorLeaseList(
        listing=lists.read(LEASE_LIST, rows),
        filter=lists.filter,
        now=request.now,
        calls=[
            operator_api_call(
                _("Leases of all tenants, newest first"),
                "ops/leases",
                tenant=lists.filter.tenant_id,
                state=",".join(state.value for state in states),
                q=lists.filter.words,
                limit=LIST_PAGE_SIZE,
            )
        ],
    )
    return render(request, "operators/leases/leases.html", {"page": page})


@dataclass(frozen=True, slots=True)
class OperatorLeaseList:
    """One page of the leases that match the filters."""

    listing: FilteredList
    filter: ListFilter
    now: datetime
    calls: list[dict[str, str]]
