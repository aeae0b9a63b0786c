"""What nodes of a GPU model and region have for leases."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from broker.domain.geometry.cpu_blocks import (
    CPU_MODEL_NAME,
    DEFAULT_OF_A_BLOCK,
    UNITS_PER_BLOCK,
    share_of_units,
    units_of_node,
)
from broker.domain.geometry.host_resources import DEFAULT_OF_A_GPU, UNKNOWN, HostResources, smallest_of
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
        return self.resources.share(size, grid, gpus=self.gpus) if self.gpus else UNKNOWN


def node_supply(resources: HostResources, models: Iterable[str]) -> NodeSupply:
    """Return what a node has whose GPUs or CPU blocks are of these models.

    GPUs that are not reported now count, because they may come back. CPU units are those of its amounts, whatever
    its blocks offer at present: other pods come and go.
    """
    count = sum(model != CPU_MODEL_NAME for model in models)
    return NodeSupply(resources, count, 0 if count else units_of_node(resources))


def load_node_supplies(**only: str) -> dict[Pool, set[NodeSupply]]:
    """Load what nodes have, by GPU model and region; `only` filters the GPUs.

    A node counts while at least one of its GPUs is reported.
    """
    models = defaultdict[str, list[str]](list)
    for node, model in Gpu.objects.values_list("node", "gpu_model"):
        models[node].append(model)
    columns = "gpu_model", "node__cluster__region", "node", "node__cpu_milli", "node__memory_mib", "node__scratch_mib"
    rows = Gpu.objects.filter(**only).exclude(health_reason=NOT_REPORTED).values_list(*columns).distinct()
    supplies = defaultdict[Pool, set[NodeSupply]](set)
    for model, region, node, *amounts in rows:
        supplies[model, region].add(node_supply(HostResources(*amounts), models[node]))
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
