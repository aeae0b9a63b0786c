"""Inventory conflicts: reports that lack a placement which a lease holds.

A node may have been repartitioned by hand under its leases, or its plugin counts slices of which it lost
some. It is unknown which of the remaining ones are free. Until placements and report agree again, or the
leases end, the rows of its GPUs stay as they are and nothing new is placed on them.
"""

from collections.abc import Iterable, Sequence

from broker.models import Allocation, Gpu
from broker.provisioners.kubernetes.drivers.discovered_inventory import DiscoveredGpu, DiscoveredNode
from broker.services.inventory import gpu_catalogue
from tenants.services.rls import system_scope

DRIVER_CHANGED = (
    "its GPUs are now requested by {new} and its leases hold them by {old}; end or relocate these leases, nothing new"
    " is placed on it until then"
)
QUARANTINED = "its leases use slices that its node does not report"
ReportedSlot = tuple[str, str, int]  # profile, isolation, first unit


def find_conflict(gpus: Iterable[Gpu], reported: Iterable[DiscoveredGpu]) -> str:
    """Return which leased placement the reported GPUs lack; empty if there is none."""
    known = {gpu.index: gpu for gpu in gpus}
    there = {
        known[found.index].pk: places
        for found in reported
        if found.index in known and (places := _changed_slots(known[found.index], found)) is not None
    }
    if not there:
        return ""
    with system_scope():
        held = Allocation.objects.filter(gpu__in=there, released_at=None).order_by("gpu__index", "placement")
        rows = list(held.values_list("gpu_id", "gpu__index", "profile", "isolation", "placement"))
    lost = [
        f"GPU {index} has no {profile} at {placement.lower}"
        for gpu_id, index, profile, isolation, placement in rows
        if (profile, isolation, placement.lower) not in there[gpu_id]
    ]
    return f"{QUARANTINED}: {lost[0]} for one of {len(lost)}; nothing new is placed on it" if lost else ""


def find_driver_change(gpus: Iterable[Gpu], report: DiscoveredNode) -> str:
    """Return why a node's changed driver conflicts with its leases, or nothing."""
    changed = {gpu.pk: gpu.driver for gpu in gpus if report.driver and gpu.driver not in ("", report.driver)}
    if not changed:
        return ""
    with system_scope():
        held = Allocation.objects.filter(gpu__in=changed, released_at=None).values_list("gpu", flat=True)[:1]
        drivers = [changed[gpu] for gpu in held]
    return DRIVER_CHANGED.format(new=report.driver, old=drivers[0]) if drivers else ""


def _changed_slots(gpu: Gpu, found: DiscoveredGpu) -> Sequence[ReportedSlot] | None:
    """Return a GPU's reported placements if they differ from its row, else None.

    A GPU partitioned per lease has no fixed placements: whatever lies on it is accepted.
    """
    if gpu_catalogue.gpu_model_spec(found.model).name != gpu.gpu_model_id:
        return []
    if not found.cuts:
        return None
    places = [(cut.profile, str(found.isolation), cut.start) for cut in found.cuts]
    booked = [(cut["profile"], cut.get("isolation", ""), cut["start"]) for cut in gpu.fixed_layout]
    return places if places != booked else None
