"""GPU pages of operators: the table, one GPU with its history, quarantine."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from billing.services.reports import earnings
from broker.models import Gpu, GpuHealth
from broker.services.inventory import hardware
from broker.services.leases.lifecycle import eviction
from broker.services.reports import fleet_gpus, inventory_history
from broker.services.reports.gpu_usage import FLEET_FILTERS, FleetGpu
from tenants.services.rls import staff_scope
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.operators.fleet.fleet_lists import CHANGE_LIST, PLACEMENT_LIST
from web.portal.operators.fleet.gpu_map import format_devices
from web.portal.operators.fleet.gpu_panel import find_gpu, gpu_panel_now, gpu_panel_of
from web.portal.operators.list_specs import ListState, OperatorList
from web.portal.operators.operator_lists import csv_time, read_lists, wants_csv
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    find_in_scope,
    operator_page,
)

PAGE_SIZE = 20  # GPUs per page; each may hold seven leases


def _gpu_cells(each: FleetGpu) -> tuple[object, ...]:
    return (
        *(each.id, each.name, each.model, each.cluster, each.cluster_name, each.region, each.node, each.node_name),
        *(each.node_state, each.health, csv_time(each.health_since), each.health_reason, len(each.slices)),
        " ".join(sorted({held.tenant for held in each.slices})),
    )


GPU_LIST = OperatorList(
    name="gpus",
    heads=(
        "gpu name model cluster cluster_name region node node_name node_state health health_since health_reason slices "
        "tenants"
    ),
    cells=_gpu_cells,
    at="health_since",
    states=(
        ListState("", gettext_lazy("All")),
        *(
            ListState(value, label, test=FLEET_FILTERS[value])
            for value, label in (
                ("sold", gettext_lazy("Sold")),
                ("free", gettext_lazy("Free capacity")),
                ("fragmented", gettext_lazy("Fragmented")),
                ("out", gettext_lazy("Out of service")),
            )
        ),
    ),
    state_parameter="show",
    search=("location", "model", "region", "id"),
)


@operator_page("gpus")
def list_gpus(request: OperatorRequest) -> Any:
    """List every GPU with its slices."""
    lists, fleet = read_lists(request, GPU_LIST), fleet_gpus.load_gpus()
    if wants_csv(request):
        return lists.csv((GPU_LIST, lambda: fleet))
    listing = lists.read(GPU_LIST, fleet, most=PAGE_SIZE)
    priced = earnings.hourly_prices_of([s.lease for gpu in listing.rows for s in gpu.slices], now=request.now)
    context = {
        "listing": listing.with_rows([gpu_panel_of(gpu, priced) for gpu in listing.rows]),
        "devices": format_devices([*lists.filter.limit(GPU_LIST, fleet)]),
        "filter": lists.count_states(GPU_LIST, fleet),
        "calls": [
            operator_api_call(_("GPUs with their slices"), "ops/gpus", show=lists.filter.state, limit=API_PAGE_SIZE)
        ],
    }
    return render(request, "operators/fleet/gpus.html", context)


@operator_page("gpu")
def show_gpu(request: OperatorRequest, pk: str) -> Any:
    """Show one GPU: its geometry, present and past leases, and history."""
    found = find_gpu(pk)
    gpu = Gpu.objects.select_related("node__cluster").get(pk=found.id)
    lists, placements = read_lists(request, PLACEMENT_LIST, CHANGE_LIST), inventory_history.placements_of(gpu)
    changes = inventory_history.changes_of(gpu.node, gpu)
    if wants_csv(request):
        return lists.csv((PLACEMENT_LIST, lambda: placements), (CHANGE_LIST, lambda: changes))
    context = {
        "gpu": gpu,
        "chosen": gpu_panel_now(found, now=request.now),
        "past": lists.read(PLACEMENT_LIST, placements, most=inventory_history.MAX_ROWS),
        "changes": lists.read(CHANGE_LIST, changes, most=inventory_history.MAX_ROWS),
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
