"""Queue of all tenants, and one lease as operators see it."""

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
from web.portal.actions import operator_api_call
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    find_in_scope,
    operator_page,
)

ENDED_STATES = (LeaseState.RELEASING, LeaseState.RELEASED)


@operator_page("queue")
def show_queue(request: OperatorRequest) -> HttpResponse:
    """List everything queued, oldest first."""
    after = request.GET.get("after", "")[:40].replace("\x00", "")
    found = line.load_queue_page(after=after)
    context = {
        "figures": line.load_queue_figures(now=request.now),
        "rows": [
            {"lease": lease, "waited": waited, "overdue": waited > MAX_WAIT}
            for lease in found.leases
            for waited in [request.now - lease.queues_since]
        ],
        "next": found.after,
        "after": after,
        "calls": [
            operator_api_call(
                _("Queued leases, oldest first"), "ops/leases", state="queued", sort="since", limit=line.PAGE_SIZE
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
