"""GPU pages of operators: the table, one GPU with its history, quarantine."""

from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from billing.services.reports import earnings
from broker.models import Gpu, GpuHealth
from broker.services.inventory import hardware
from broker.services.leases.lifecycle import eviction
from broker.services.reports import fleet_gpus, inventory_history
from broker.services.reports.gpu_usage import FLEET_FILTERS
from tenants.services.rls import staff_scope
from web.portal.actions import API_PAGE_SIZE, first_row_index, operator_api_call
from web.portal.operators.fleet.gpu_map import format_devices
from web.portal.operators.fleet.gpu_panel import find_gpu, gpu_panel_now, gpu_panel_of
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    find_in_scope,
    operator_page,
)

PAGE_SIZE = 20  # GPUs per page; each may hold seven leases
GPU_FILTERS = {
    "": gettext_noop("All"),
    "sold": gettext_noop("Sold"),
    "free": gettext_noop("Free capacity"),
    "fragmented": gettext_noop("Fragmented"),
    "out": gettext_noop("Out of service"),
}


@operator_page("gpus")
def list_gpus(request: OperatorRequest) -> HttpResponse:
    """List every GPU with its slices."""
    fleet = fleet_gpus.load_gpus()
    chosen = request.GET.get("show", "")
    chosen = chosen if chosen in GPU_FILTERS else ""
    found = [gpu for gpu in fleet if not chosen or FLEET_FILTERS[chosen](gpu)]
    start = first_row_index(request.GET.get("from", ""), len(found))
    shown = found[start : start + PAGE_SIZE]
    priced = earnings.hourly_prices_of([s.lease for gpu in shown for s in gpu.slices], now=request.now)
    context = {
        "rows": [gpu_panel_of(gpu, priced) for gpu in shown],
        "count": len(found),
        "devices": format_devices(found),
        "start": start + 1,
        "end": start + len(shown),
        "before": _list_url(chosen, max(start - PAGE_SIZE, 0)) if start else "",
        "after": _list_url(chosen, start + PAGE_SIZE) if start + PAGE_SIZE < len(found) else "",
        "filters": [
            {
                "url": _list_url(name, 0),
                "label": _(label),
                "count": sum(1 for gpu in fleet if not name or FLEET_FILTERS[name](gpu)),
                "current": name == chosen,
            }
            for name, label in GPU_FILTERS.items()
        ],
        "calls": [operator_api_call(_("GPUs with their slices"), "ops/gpus", show=chosen, limit=API_PAGE_SIZE)],
    }
    return render(request, "operators/fleet/gpus.html", context)


def _list_url(show: str, start: int) -> str:
    query = urlencode({name: value for name, value in (("show", show), ("from", start)) if value})
    return reverse("ops-gpus") + (f"?{query}" if query else "")


@operator_page("gpu")
def show_gpu(request: OperatorRequest, pk: str) -> HttpResponse:
    """Show one GPU: its geometry, present and past leases, and history."""
    found = find_gpu(pk)
    gpu = Gpu.objects.select_related("node__cluster").get(pk=found.id)
    context = {
        "gpu": gpu,
        "chosen": gpu_panel_now(found, now=request.now),
        "past": inventory_history.latest_placements(gpu),
        "changes": inventory_history.latest_changes(gpu.node, gpu),
        "calls": [
            operator_api_call(_("This GPU with its slices"), f"ops/gpus/{found.id}"),
            operator_api_call(_("Lease history"), "ops/allocations", gpu=found.id, limit=inventory_history.MAX_ROWS),
        ],
    }
    return render(request, "operators/fleet/gpu.html", context)


def confirm_health_change(request: OperatorRequest, pk: str, health: GpuHealth, verb: str, *lines: str) -> HttpResponse:
    """Ask for confirmation and a reason, then set a GPU's health."""
    rows = Gpu.objects.select_related("node__cluster")
    gpu = find_in_scope(rows, pk, _("GPU"), fix=_("Select it from the list of GPUs."))
    where = f"{gpu.node.cluster.name} / {gpu.node.name} / {gpu}"
    with staff_scope():
        held = len(find_gpu(pk).slices)

    def act(why: str) -> str:
        reason = eviction.clean_reason(why)
        hardware.set_gpu_health(gpu, health, reason=reason, actor=request.actor, now=request.now)
        return _("{where} is now {label_lower}.").format(where=where, label_lower=health.label.lower())

    step = Confirmation(
        title=f"{verb} {where}?",
        verb=f"{verb} {gpu}",
        back=reverse("ops-gpu", args=[pk]),
        lines=(
            *lines,
            ngettext("{n} lease is on it now.", "{n} leases are on it now.", held).format(n=held),
        ),
        danger=health is GpuHealth.UNHEALTHY,
        hint=_("Recorded in its events and in the audit log."),
    )
    return confirm_action(request, step, act)


@operator_page("gpu.quarantine", methods=SAFE_OR_POST)
def quarantine_gpu(request: OperatorRequest, pk: str) -> HttpResponse:
    """Take a GPU out of the pool."""
    effect = _("No new leases are placed on it. Running leases continue; release them individually if needed.")
    return confirm_health_change(request, pk, GpuHealth.UNHEALTHY, _("Quarantine"), effect)


@operator_page("gpu.return", methods=SAFE_OR_POST)
def return_gpu(request: OperatorRequest, pk: str) -> HttpResponse:
    """Return a GPU to the pool."""
    effect = _("It is available immediately, and queued leases are placed.")
    return confirm_health_change(request, pk, GpuHealth.HEALTHY, _("Return"), effect)
