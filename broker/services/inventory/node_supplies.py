"""What nodes of a GPU model and region have for leases."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from django.db.models import Count

from broker.domain.geometry.host_resources import DEFAULT_OF_A_GPU, HostResources, smallest_of
from broker.models import Gpu
from broker.services.inventory.gpu_matching import NOT_REPORTED

Pool = tuple[str, str]  # GPU model, region


class NodeSupply(NamedTuple):
    """What a node has for leases, and how many GPUs share it."""

    resources: HostResources
    gpus: int

    def share(self, size: int, grid: int) -> HostResources:
        """Return what comes with a slice of that many units of a GPU's grid."""
        return self.resources.share(size, grid, gpus=self.gpus)


def load_node_supplies(**only: str) -> dict[Pool, set[NodeSupply]]:
    """Load what nodes have, by GPU model and region; `only` filters the GPUs.

    A node counts while at least one of its GPUs is reported. GPUs that are not reported now count as its GPUs,
    because they may come back.
    """
    counts = dict(Gpu.objects.values_list("node").annotate(Count("pk")).order_by())
    columns = "gpu_model", "node__cluster__region", "node", "node__cpu_milli", "node__memory_mib", "node__scratch_mib"
    rows = Gpu.objects.filter(**only).exclude(health_reason=NOT_REPORTED).values_list(*columns).distinct()
    supplies = defaultdict[Pool, set[NodeSupply]](set)
    for model, region, node, *amounts in rows:
        supplies[model, region].add(NodeSupply(HostResources(*amounts), counts[node]))
    return supplies


def derived_resources(supplies: Iterable[NodeSupply], size: int, grid: int) -> HostResources:
    """Return what a slice brings, so that every GPU of every node can be leased.

    A node that does not report an amount counts as having the default of it.
    """
    default = DEFAULT_OF_A_GPU.share(size, grid)
    shares = [supply.share(size, grid).or_else(default) for supply in supplies]
    return smallest_of(shares or [default]).rounded_down()
