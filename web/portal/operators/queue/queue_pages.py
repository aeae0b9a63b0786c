"""Queue of all tenants, and one lease as operators see it."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from broker.domain.lifecycle.states import LeaseState
from broker.models import Allocation, Lease
from broker.services.leases.lifecycle import eviction
from broker.services.queue.starvation_guard import MAX_WAIT
from broker.services.reports import inventory_history
from broker.services.reports import queue_report as line
from tenants.services.rls import staff_scope
from web.portal.actions import LIST_PAGE_SIZE, operator_api_call
from web.portal.operators.list_specs import OperatorList
from web.portal.operators.operator_lists import csv_time, read_lists, wants_csv
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    find_in_scope,
    operator_page,
)

ENDED_STATES = (LeaseState.RELEASING, LeaseState.RELEASED)


def _queued_cells(each: Lease) -> tuple[object, ...]:
    return (
        *(each.pk, each.name, each.tenant_id, each.tenant.name, each.project.name, each.offering.label),
        *(each.offering.region, each.offering.price_class, each.quantity, csv_time(each.created_at)),
        *(csv_time(each.queues_since), each.pending_reason, each.requested_by_label),
    )


QUEUE_LIST = OperatorList(
    name="queue",
    heads=(
        "lease name tenant tenant_name project offering region price_class quantity created_at queued_since "
        "waiting_for requested_by"
    ),
    cells=_queued_cells,
    tenant="tenant_id",
    at="created_at",
    search=("name", "offering__label", "requested_by_label", "pk"),
)


@operator_page("queue")
def show_queue(request: OperatorRequest) -> Any:
    """List everything queued, oldest first."""
    lists, rows = read_lists(request, QUEUE_LIST), line.queued_leases()
    if wants_csv(request):
        return lists.csv((QUEUE_LIST, lambda: rows))
    listing = lists.read(QUEUE_LIST, rows)
    context = {
        "figures": line.load_queue_figures(now=request.now),
        "listing": listing.with_rows(
            [
                {"lease": lease, "waited": waited, "overdue": waited > MAX_WAIT}
                for lease in listing.rows
                for waited in [request.now - lease.queues_since]
            ]
        ),
        "calls": [
            operator_api_call(
                _("Queued leases, oldest first"),
                "ops/leases",
                state="queued",
                tenant=lists.filter.tenant_id,
                sort="queued_since",
                limit=LIST_PAGE_SIZE,
            )
        ],
    }
    return render(request, "operators/queue/queue.html", context)


def find_lease(pk: str) -> Lease:
    """Load a lease of any tenant; must run with staff access."""
    rows = Lease.objects.select_related("tenant", "project", "offering")
    return find_in_scope(rows, pk, _("Lease"), fix=_("Open it from the control room or the queue."))


@operator_page("lease")
def show_lease(request: OperatorRequest, pk: str) -> HttpResponse:
    """Show a lease: its tenant, its placement, and every transition."""
    found = find_lease(pk)
    held = Allocation.objects.filter(lease=found, generation=found.generation, is_relocation=False)
    context = {
        "lease": found,
        "price_class": found.offering.price_class.replace("_", "-"),
        "places": held.select_related("gpu__node__cluster").order_by("gpu_id", "placement"),
        "steps": inventory_history.transitions_of(found),
        "over": found.state in ENDED_STATES,
        "calls": [
            operator_api_call(_("State history"), f"ops/leases/{found.pk}/transitions"),
            operator_api_call(_("This lease"), f"ops/leases/{found.pk}"),
            operator_api_call(_("Placements"), "ops/allocations", lease=found.pk),
        ],
    }
    return render(request, "operators/queue/lease.html", context)


@operator_page("lease.release", methods=SAFE_OR_POST)
def release_lease(request: OperatorRequest, pk: str) -> HttpResponse:
    """Release a lease of any tenant, with a reason the tenant reads."""
    with staff_scope():
        found = find_lease(pk)

    def act(why: str) -> str:
        eviction.evict_lease(pk, why=why, actor=request.actor, now=request.now)
        return _("{found_name} of {tenant_name} was released.").format(
            found_name=found.name, tenant_name=found.tenant.name
        )

    queued = found.state == LeaseState.QUEUED
    step = Confirmation(
        title=_("Release {found_name} of {tenant_name}?").format(found_name=found.name, tenant_name=found.tenant.name),
        verb=_("Release {found_name}").format(found_name=found.name),
        back=reverse("ops-queue") if queued else reverse("ops-lease", args=[pk]),
        lines=(
            _("The request leaves the queue. Nothing is charged.")
            if queued
            else _("Billing stops immediately. The slot is free once the cluster confirms the release."),
        ),
        danger=True,
        hint=_("Visible to the tenant on the lease."),
    )
    return confirm_action(request, step, act)
