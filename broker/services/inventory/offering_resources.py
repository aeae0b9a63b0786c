"""CPU, memory and scratch of offerings and leases, and nodes that have less of them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import F

from broker.domain.geometry.host_resources import (
    HostResources,
    exceeded_fields,
    format_cpus,
    format_size,
    smallest_of,
)
from broker.domain.lifecycle.states import Isolation
from broker.models import Cluster, Gpu, LayoutPolicy, Lease, Node, Offering
from broker.provisioners.kubernetes.drivers.driver_registry import dynamic_isolations
from broker.services.inventory import hardware
from broker.services.inventory.gpu_catalogue import gpu_model_spec, profile_of
from broker.services.inventory.gpu_matching import NOT_REPORTED
from broker.services.inventory.node_supplies import (
    NodeSupply,
    default_share,
    load_node_supplies,
    node_supply,
)

COLUMNS = {"cpu_milli": "cpu_milli", "memory_mib": "host_memory_mib", "scratch_mib": "scratch_mib"}  # of an offering
FIELD_NAMES = {"cpu_milli": "CPUs", "memory_mib": "memory", "scratch_mib": "scratch"}


def lease_resources(lease: Lease) -> HostResources:
    """Return what each slice of a lease brings of its node.

    A lease requested before that was recorded keeps the share that its pods were made with.
    """
    return lease.recorded_resources if lease.recorded_resources.is_known else _default_share(lease.offering)


def largest_resources(offering: Offering) -> HostResources:
    """Return the most that an offering may bring: what every node can give.

    An amount that no node reports is zero.
    """
    size, grid = _slice_of(offering)
    supplies = load_node_supplies(gpu_model=offering.model, node__cluster__region=offering.region)
    return smallest_of(each.share(size, grid) for each in supplies.get((offering.model, offering.region), ()))


def share_of_slice(offering: Offering, supply: NodeSupply) -> HostResources:
    """Return what a node has for each slice of an offering."""
    return supply.share(*_slice_of(offering))


def _default_share(offering: Offering) -> HostResources:
    return default_share(offering.model, *_slice_of(offering))


def _slice_of(offering: Offering) -> tuple[int, int]:
    """Return how many units of its GPU's grid an offering takes, and the grid.

    An offering of a profile that its model no longer has counts as a whole GPU.
    """
    try:
        return profile_of(offering).memory, gpu_model_spec(offering.model).grid
    except ValueError:
        return 1, 1


class _NodeGpu(NamedTuple):
    """The columns of a GPU that say what it can be sold as."""

    node_id: str
    gpu_model_id: str
    layout_policy: str
    fixed_layout: list[dict[str, Any]]
    published: dict[str, list[int]] | None
    health_reason: str
    driver: str

    def can_hold(self, offering: Offering, driver: str) -> bool:
        """Return whether a slice of the offering may be placed on this GPU."""
        if self.gpu_model_id != offering.gpu_model_id or self.health_reason == NOT_REPORTED:
            return False
        if self.layout_policy == LayoutPolicy.FIXED:
            return any(cut["profile"] == offering.profile for cut in self.fixed_layout)
        isolation = Isolation(offering.isolation)
        dedicated = isolation in (Isolation.DEVICE, Isolation.HARDWARE)
        published = self.published is None or not dedicated or bool(self.published.get(offering.profile))
        return published and isolation in dynamic_isolations(self.driver or driver)


def update_shortages_of(offering: Offering, *, now: datetime) -> None:
    """Record anew which nodes have less than the offerings of its model and region promise."""
    for cluster in Cluster.objects.filter(region=offering.region).order_by("name"):
        nodes = Node.objects.filter(cluster=cluster, gpus__gpu_model=offering.model)
        update_shortages(cluster, list(nodes.distinct().order_by("name")), now=now)


def update_shortages(cluster: Cluster, nodes: Iterable[Node], *, now: datetime) -> None:
    """Record which nodes have less than the offerings of their cluster's region promise.

    Nothing new is placed there.
    """
    checked = {node.pk: node for node in nodes if node.host_resources.is_known or node.resource_shortage}
    if not checked:
        return
    gpus = defaultdict[str, list[_NodeGpu]](list)
    for row in Gpu.objects.filter(node__in=checked).values_list(*_NodeGpu._fields):
        gpus[row[0]].append(_NodeGpu(*row))
    models = {gpu.gpu_model_id for its in gpus.values() for gpu in its}
    promised = Offering.objects.published().filter(region=cluster.region, gpu_model__in=models)
    offerings = sorted(promised, key=lambda it: (it.isolation != Isolation.DEVICE, -it.memory_gb, it.label, it.pk))
    for node in checked.values():
        shortage = _find_shortage(node, gpus[node.pk], offerings, cluster.driver)
        if shortage == node.resource_shortage:
            continue
        Node.objects.filter(pk=node.pk).update(resource_shortage=shortage, version=F("version") + 1)
        node.resource_shortage = shortage
        if not shortage:
            hardware.enqueue_affected(node, now)


def _find_shortage(node: Node, gpus: Sequence[_NodeGpu], offerings: Iterable[Offering], driver: str) -> str:
    """Return which offering promises more than the node has; empty if none does."""
    supply = node_supply(node.host_resources, [gpu.gpu_model_id for gpu in gpus])
    for offering in offerings:
        if not any(gpu.can_hold(offering, driver) for gpu in gpus):
            continue
        available = supply.share(*_slice_of(offering))
        for name in exceeded_fields(offering.host_resources, available):
            return _shortage_text(offering, name, available)
    return ""


def _shortage_text(offering: Offering, name: str, available: HostResources) -> str:
    unit = "GPU" if offering.isolation == Isolation.DEVICE else unit_name(offering)
    promised, there = getattr(offering.host_resources, name), getattr(available, name)
    return (
        f"Offering {offering.label} promises {describe_amount(name, promised)}, this node has"
        f" {describe_amount(name, there)} for each {unit}; lower the offering's {FIELD_NAMES[name]}."
    )


def unit_name(offering: Offering) -> str:
    """Return what a node is divided into for an offering."""
    return "lease of this size" if offering.is_cpu_only else "such slice"


def describe_amount(name: str, amount: int) -> str:
    """Return an amount of one field in words: 3.4 CPUs, 96 GiB memory."""
    return f"{format_cpus(amount) if name == 'cpu_milli' else format_size(amount)} {FIELD_NAMES[name]}"
