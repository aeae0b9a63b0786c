"""Slots that pods outside the broker hold, so that they are not sold.

Where a device plugin picks the physical slice, it is unknown which one a pod of others has: as many free slots of
that resource are closed as such pods hold. Where devices have names, the GPU they belong to is closed.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from broker.domain.lifecycle.states import Isolation
from broker.models import Allocation, Gpu
from broker.provisioners.kubernetes.drivers import gfd
from broker.provisioners.kubernetes.drivers.discovered_inventory import (
    DiscoveredGpu,
    DiscoveredNode,
    DiscoveredSlice,
    ForeignNodeUsage,
)
from tenants.services.rls import system_scope

Cut = dict[str, Any]  # one slice in Gpu.fixed_layout
DRA = "dra"  # name of the driver whose devices have names
PLUGIN_HOLDER = "a pod outside the broker may hold it by a device plugin"
HELD_BY_PLUGIN = (
    "Pods outside the broker hold {held} of it by a device plugin, which does not say which GPUs, so none of them are"
    " sold; end these pods."
)
IN_USE = "in_use"  # its key in a cut that a pod of others holds, or that is broken
USUAL_NAMES = {Isolation.DEVICE: gfd.GPU_RESOURCE, Isolation.SOFT: f"{gfd.GPU_RESOURCE}.shared"}
USUAL_NAMES[Isolation.NONE] = USUAL_NAMES[Isolation.SOFT]


def close_slots(
    layouts: dict[int, list[Cut]], gpus: Iterable[Gpu], usage: ForeignNodeUsage, unreported: Mapping[str, int]
) -> None:
    """Mark the cuts of a node's GPUs, by GPU index, that pods of others hold.

    Cuts that leases hold stay open; among the free ones the last are closed. So are as many as leases hold on GPUs
    that are not reported: their pods have devices among the reported ones.
    """
    wanted = Counter(unreported)
    wanted.update(_held_resources(usage))
    if not wanted:
        return
    leased = _leased_starts(gpus)
    for index, cuts in sorted(layouts.items(), reverse=True):
        for cut in reversed(cuts):
            name = requested_name(cut)
            if wanted[name] > 0 and (index, cut["start"]) not in leased and not cut.get(IN_USE):
                cut[IN_USE] = True
                wanted[name] -= 1


def close_gpus_of_plugin_pods(columns: Mapping[int, dict[str, Any]], report: DiscoveredNode) -> str:
    """Close a DRA node's GPUs while its device plugin serves others; return why."""
    held = _held_resources(report.foreign) if report.driver == DRA else {}
    if not held:
        return ""
    for each in columns.values():
        each["foreign_holder"] = each["foreign_holder"] or PLUGIN_HOLDER
    return HELD_BY_PLUGIN.format(held=" and ".join(f"{amount} {name}" for name, amount in sorted(held.items())))


def _held_resources(usage: ForeignNodeUsage) -> dict[str, int]:
    """Return how many devices pods of others hold, by resource name."""
    return {name: int(amount) for name, amount in usage.amounts.items() if name.startswith(gfd.PREFIX) and amount >= 1}


def requested_name(cut: Cut) -> str:
    """Return the resource name by which pods request a cut."""
    isolation = Isolation(cut["isolation"])
    return str(cut.get("resource_name") or USUAL_NAMES.get(isolation) or gfd.mig_resource_name(cut["profile"]))


def discovered_name(found: DiscoveredGpu, cut: DiscoveredSlice) -> str:
    """Return the resource name by which pods request a reported cut."""
    own = cut.resource_name or found.resource_name or USUAL_NAMES.get(found.isolation)
    return str(own or gfd.mig_resource_name(cut.profile))


def foreign_holder(found: DiscoveredGpu, usage: ForeignNodeUsage) -> str:
    """Return who outside the broker holds a GPU or its devices, else an empty text."""
    return next((usage.devices[name] for name in (found.uuid, *found.devices) if name in usage.devices), "")


def _leased_starts(gpus: Iterable[Gpu]) -> set[tuple[int, int]]:
    index = {gpu.pk: gpu.index for gpu in gpus}
    with system_scope():
        held = Allocation.objects.filter(gpu__in=index, released_at=None).values_list("gpu_id", "placement")
        return {(index[gpu], placement.lower) for gpu, placement in held}
