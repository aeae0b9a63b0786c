"""What nodes of a GPU model and region have for leases."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from broker.domain.geometry.cpu_blocks import (
    CPU_MODEL_NAME,
    DEFAULT_OF_A_BLOCK,
    UNITS_PER_BLOCK,
    share_of_units,
    units_in_block,
)
from broker.domain.geometry.host_resources import DEFAULT_OF_A_GPU, HostResources, smallest_of
from broker.models import Gpu
from broker.services.inventory.gpu_matching import NOT_REPORTED

Pool = tuple[str, str]  # GPU model, region


class NodeSupply(NamedTuple):
    """What a node has for leases, and how many GPUs or CPU units share it."""

    resources: HostResources
    gpus: int
    cpu_units: int = 0  # of a node without GPUs, which is sold as CPU blocks

    def share(self, size: int, grid: int) -> HostResources:
        """Return what comes with that many units of a GPU or CPU block."""
        if self.cpu_units:
            return share_of_units(self.resources, size, self.cpu_units)
        return self.resources.share(size, grid, gpus=self.gpus)


class SupplyingGpu(NamedTuple):
    """The columns of a device that determine its share of the node."""

    model: str
    published: dict[str, list[int]] | None
    health_reason: str


def node_supply(resources: HostResources, gpus: Iterable[SupplyingGpu]) -> NodeSupply:
    """Return what a node with these GPUs or CPU blocks has.

    GPUs that are not reported now count, because they may come back; of CPU blocks only those that its CPUs make now.
    """
    count = cpu_units = 0
    for gpu in gpus:
        if gpu.model != CPU_MODEL_NAME:
            count += 1
        elif gpu.health_reason != NOT_REPORTED:
            cpu_units += units_in_block(gpu.published)
    return NodeSupply(resources, count, cpu_units)


def load_node_supplies(**only: str) -> dict[Pool, set[NodeSupply]]:
    """Load what nodes have, by GPU model and region; `only` filters the GPUs.

    A node counts while at least one of its GPUs is reported.
    """
    gpus = defaultdict[str, list[SupplyingGpu]](list)
    for node, model, published, reason in Gpu.objects.values_list("node", "gpu_model", "published", "health_reason"):
        gpus[node].append(SupplyingGpu(model, published, reason))
    columns = "gpu_model", "node__cluster__region", "node", "node__cpu_milli", "node__memory_mib", "node__scratch_mib"
    rows = Gpu.objects.filter(**only).exclude(health_reason=NOT_REPORTED).values_list(*columns).distinct()
    supplies = defaultdict[Pool, set[NodeSupply]](set)
    for model, region, node, *amounts in rows:
        supplies[model, region].add(node_supply(HostResources(*amounts), gpus[node]))
    return supplies


def default_share(model: str, size: int, grid: int) -> HostResources:
    """Return what a slice brings where its node reports nothing."""
    if model == CPU_MODEL_NAME:
        return share_of_units(DEFAULT_OF_A_BLOCK, size, UNITS_PER_BLOCK)
    return DEFAULT_OF_A_GPU.share(size, grid)


def derived_resources(supplies: Iterable[NodeSupply], size: int, grid: int, *, model: str) -> HostResources:
    """Return what a slice brings, so that every GPU of every node can be leased.

    A node that does not report an amount counts as having the default of it.
    """
    default = default_share(model, size, grid)
    shares = [supply.share(size, grid).or_else(default) for supply in supplies]
    return smallest_of(shares or [default]).rounded_down()
