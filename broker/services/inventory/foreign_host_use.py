"""GPUs that are not sold because other pods hold their CPU and memory.

A node keeps its amounts, which offerings are measured by; pods of others come and go. While they hold so much that
leases on all GPUs would not fit beside them, as many free GPUs as needed are closed.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import add
from typing import Any

from broker.domain.geometry.host_resources import UNKNOWN, HostResources, exceeded_fields
from broker.domain.lifecycle.states import Isolation
from broker.models import Allocation, Gpu, GpuHealth, LayoutPolicy, Node, Offering
from broker.provisioners.kubernetes.drivers.discovered_inventory import DiscoveredNode
from broker.provisioners.kubernetes.drivers.driver_registry import dynamic_isolations
from broker.services.inventory.foreign_use import IN_USE
from broker.services.inventory.gpu_catalogue import profile_of
from broker.services.inventory.offering_resources import describe_amount, lease_resources
from tenants.services.rls import system_scope

GpuColumns = Mapping[int, dict[str, Any]]  # by GPU index, the columns of a report
HOLDER = "pods outside the broker hold the CPU or memory that comes with it"
SHORT = (
    "Pods outside the broker leave {left}, so {closed} of its {gpus} GPUs are not sold; move these pods to other nodes."
)


def close_gpus_without_resources(node: Node, known: Iterable[Gpu], columns: GpuColumns, report: DiscoveredNode) -> str:
    """Close free GPUs that lack CPU or memory; return why.

    Of the GPUs those are closed first whose leases hold the least.
    """
    left, total = report.resources_left, report.resources
    if not exceeded_fields(total, left):
        return ""
    rows = {gpu.index: gpu for gpu in known}
    promised = list(Offering.objects.published().filter(region=node.cluster.region).exclude(gpu_model=None))
    wanted = {i: _largest_promise(promised, each, node.cluster.driver) for i, each in columns.items()}
    for index in columns:
        if not _is_open(rows.get(index), columns[index]):
            wanted[index] = UNKNOWN
    held = _held_resources(rows.values())
    needed = {i: _largest([wanted.get(i, UNKNOWN), held.get(i, UNKNOWN)]) for i in {*columns, *held}}
    closed = 0
    for index in sorted((i for i in wanted if wanted[i].is_known), key=lambda i: (held.get(i, UNKNOWN).amounts(), -i)):
        short = exceeded_fields(_sum(needed.values()), left)
        if not short:
            break
        columns[index]["foreign_holder"] = HOLDER
        needed[index] = held.get(index, UNKNOWN)
        closed += 1
    if not closed:
        return ""
    named = " and ".join(describe_amount(name, getattr(left, name)) for name in exceeded_fields(total, left))
    return SHORT.format(left=named, closed=closed, gpus=len(columns))


def _largest_promise(promised: Sequence[Offering], columns: Mapping[str, Any], driver: str) -> HostResources:
    """Return the most that leases on one GPU may bring, if it is leased completely."""
    offered = [each for each in promised if each.gpu_model_id == columns["gpu_model_id"]]
    if columns["layout_policy"] == LayoutPolicy.FIXED:
        cuts = [(cut["profile"], cut["isolation"]) for cut in columns["fixed_layout"] if not cut.get(IN_USE)]
        matching = ([each for each in offered if (each.profile, each.isolation) == cut] for cut in cuts)
        return _sum(_largest(each.host_resources for each in some) for some in matching)
    uncut = dynamic_isolations(columns["driver"] or driver)
    dynamic = [each for each in offered if Isolation(each.isolation) in uncut]
    return _largest(each.host_resources.times(_slices_per_gpu(each, columns["published"])) for each in dynamic)


def _slices_per_gpu(offering: Offering, published: Mapping[str, Sequence[int]] | None) -> int:
    """Return how many slices of an offering a GPU has."""
    try:
        most = profile_of(offering).max_instances
    except ValueError:
        return 1
    return most if published is None else min(most, len(published.get(offering.profile, ())))


def _is_open(gpu: Gpu | None, columns: Mapping[str, Any]) -> bool:
    """Return whether something new may be placed on a GPU."""
    if columns["foreign_holder"] or (gpu is not None and gpu.health != GpuHealth.HEALTHY):
        return False
    cuts = columns["fixed_layout"]
    return not cuts or not all(cut.get(IN_USE) for cut in cuts)


def _held_resources(gpus: Iterable[Gpu]) -> dict[int, HostResources]:
    """Return what leases hold, by the index of their GPU."""
    index = {gpu.pk: gpu.index for gpu in gpus}
    found: dict[int, HostResources] = defaultdict(HostResources)
    with system_scope():
        held = Allocation.objects.filter(gpu__in=index, released_at=None).select_related("lease__offering")
        for each in held:
            found[index[each.gpu_id]] = _sum([found[index[each.gpu_id]], lease_resources(each.lease)])
    return found


def _largest(many: Iterable[HostResources]) -> HostResources:
    most = UNKNOWN
    for each in many:
        most = HostResources(*map(max, most.amounts(), each.amounts()))
    return most


def _sum(many: Iterable[HostResources]) -> HostResources:
    total = UNKNOWN
    for each in many:
        total = HostResources(*map(add, total.amounts(), each.amounts()))
    return total
