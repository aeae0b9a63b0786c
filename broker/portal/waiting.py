"""The queue of all tenants, and one lease as an operator sees it."""

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from broker.domain.states import LeaseState
from broker.models import Allocation, Lease
from broker.portal.operations import OpsRequest, Step, ask, page
from broker.services.fleet import history
from broker.services.fleet import queue as line
from broker.services.leases import evicting
from broker.services.leases.precedence import PATIENCE
from tenants.portal.acts import ops_call
from tenants.services.refusals import Missing
from tenants.services.walls import as_staff

OVER = (LeaseState.RELEASING, LeaseState.RELEASED)


@require_safe
@page("queue")
def queue(request: OpsRequest) -> HttpResponse:
    """Show everything that waits, oldest first."""
    after = request.GET.get("after", "")[:40].replace("\x00", "")
    found = line.waiting(after=after)
    told = {
        "figures": line.figures(now=request.now),
        "rows": [
            {"lease": lease, "waited": waited, "overdue": waited > PATIENCE}
            for lease in found.leases
            for waited in [request.now - lease.queues_since]
        ],
        "next": found.after,
        "after": after,
        "calls": [
            ops_call(
                "Leases that wait, oldest first", "ops/leases", state="queued", sort="since", limit=line.PAGE
            )
        ],
    }
    return render(request, "ops/queue.html", told)


def lease_or_missing(pk: str) -> Lease:
    """Load a lease of any tenant; must run as staff."""
    found = Lease.objects.select_related("tenant", "project", "offering").filter(pk=pk).first()
    if found is None:
        raise Missing(f"There is no lease {pk!r}.", fix="Look for it in the control room or the queue.")
    return found


@require_safe
@page("lease")
def lease(request: OpsRequest, pk: str) -> HttpResponse:
    """Show whose a lease is, where it lies, and every step of its life."""
    found = lease_or_missing(pk)
    held = Allocation.objects.filter(lease=found, generation=found.generation, for_move=False)
    told = {
        "lease": found,
        "price_class": found.offering.price_class.replace("_", "-"),
        "places": held.select_related("gpu__node__cluster").order_by("gpu_id", "placement"),
        "steps": history.steps_of(found),
        "over": found.state in OVER,
        "calls": [
            ops_call("Every step", f"ops/leases/{found.pk}/transitions"),
            ops_call("This lease", f"ops/leases/{found.pk}"),
            ops_call("Where it lies and lay", "ops/allocations", lease=found.pk),
        ],
    }
    return render(request, "ops/lease.html", told)


@require_http_methods(["GET", "HEAD", "POST"])
@page("lease.release")
def release(request: OpsRequest, pk: str) -> HttpResponse:
    """End a lease of any tenant, with a reason the tenant reads."""
    with as_staff():
        found = lease_or_missing(pk)

    def act(why: str) -> str:
        evicting.evict(pk, why=why, actor=request.actor, now=request.now)
        return f"{found.name} of {found.tenant.name} is released."

    queued = found.state == LeaseState.QUEUED
    step = Step(
        title=f"Release {found.name} of {found.tenant.name}?",
        verb=f"Release {found.name}",
        back=reverse("ops-queue") if queued else reverse("ops-lease", args=[pk]),
        lines=(
            "It leaves the queue; nothing was charged."
            if queued
            else "Charging ends the moment you press; its place is free once the cluster confirms it.",
        ),
        danger=True,
        hint="The tenant reads this sentence on its lease.",
    )
    return ask(request, step, act)
