"""GPU matching: finds known GPUs in a report by UUID.

In a report the index of a GPU is only a position.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from itertools import count

from broker.models import Allocation, Cluster, Gpu
from broker.provisioners.kubernetes.drivers.discovered_inventory import DiscoveredGpu, DiscoveredNode
from tenants.services.rls import system_scope

NOT_REPORTED = "no longer reported by its node"
NodeKey = tuple[str, str]  # cluster id, node name


@dataclass(frozen=True, slots=True)
class KnownGpu:
    """A GPU row's location, as far as matching needs it."""

    pk: str
    node_key: NodeKey
    index: int
    is_gone: bool


@dataclass(frozen=True, slots=True)
class MatchedInventory:
    """A report with each GPU once, numbered as in our rows."""

    nodes: list[DiscoveredNode]
    problems: list[str]
    relocated_gpu_ids: list[str]  # rows of GPUs that are in another machine now


def has_own_uuid(gpu: DiscoveredGpu | Gpu) -> bool:
    """Return whether a GPU is known by its own UUID, not only by its position."""
    return gpu.uuid.startswith("GPU-")


def match_gpus(cluster: Cluster, found: list[DiscoveredNode]) -> MatchedInventory:
    """Number reported GPUs as in our rows; leave duplicates out and report them."""
    gpus_of = ((node.name, gpu) for node in found for gpu in node.gpus)
    reported = {(gpu.uuid, (cluster.pk, name)) for name, gpu in gpus_of if has_own_uuid(gpu)}
    if not reported:
        return MatchedInventory(found, [], [])
    known, numbers = _load_known_gpus({uuid for uuid, _ in reported}), _load_indexes(cluster, found)
    held = _gpus_with_leases(row.pk for uuid, row in known.items() if (uuid, row.node_key) not in reported)
    nodes, problems, moved, uuids = list[DiscoveredNode](), list[str](), list[str](), set[str]()
    for node in found:
        place, gpus, here = (cluster.pk, node.name), list[DiscoveredGpu](), dict[str, int]()
        for gpu in node.gpus:
            row = known.get(gpu.uuid)
            why = ""
            if gpu.uuid in uuids:
                why = "it is reported twice"
            elif row and row.node_key == place:
                here[gpu.uuid] = row.index
            elif row and row.pk in held:
                why = f"leases still use it on {row.node_key[1]}"
            elif row and _is_still_there(row, cluster, (gpu.uuid, row.node_key) in reported):
                why = f"{row.node_key[1]} reports it too"
            elif row:
                moved.append(row.pk)
            if why:
                problems.append(f"{node.name}: {gpu.uuid} is not accepted: {why}")
                continue
            uuids |= {gpu.uuid} if has_own_uuid(gpu) else set()
            gpus.append(gpu)
        nodes.append(replace(node, gpus=tuple(_assign_indexes(gpus, here, numbers[node.name]))))
    return MatchedInventory(nodes, problems, moved)


def _is_still_there(row: KnownGpu, cluster: Cluster, reported: bool) -> bool:
    """Return whether a GPU is still where our rows have it.

    For another cluster only our rows can tell.
    """
    return reported if row.node_key[0] == cluster.pk else not row.is_gone


def _assign_indexes(gpus: Iterable[DiscoveredGpu], here: Mapping[str, int], taken: Set[int]) -> Iterator[DiscoveredGpu]:
    """Give known GPUs their own index and new ones a free index.

    A new GPU takes the index of its position if that is free, as when it replaces another.
    """
    used = set(here.values())
    for gpu in gpus:
        index = here.get(gpu.uuid, gpu.index)
        if gpu.uuid not in here and index in used:
            index = next(free for free in count() if free not in used and free not in taken)
        used.add(index)
        yield replace(gpu, index=index)


def _load_known_gpus(uuids: Iterable[str]) -> dict[str, KnownGpu]:
    columns = ("uuid", "id", "node__cluster", "node__name", "index", "health_reason")
    rows = Gpu.objects.filter(uuid__in=uuids).values_list(*columns)
    return {
        uuid: KnownGpu(pk, (cluster, node), index, why == NOT_REPORTED) for uuid, pk, cluster, node, index, why in rows
    }


def _load_indexes(cluster: Cluster, found: Iterable[DiscoveredNode]) -> dict[str, set[int]]:
    """Return all GPU indexes ever used on each node."""
    numbers = defaultdict[str, set[int]](set)
    rows = Gpu.objects.filter(node__cluster=cluster, node__name__in=[node.name for node in found])
    for name, index in rows.values_list("node__name", "index"):
        numbers[name].add(index)
    return numbers


def _gpus_with_leases(gpus: Iterable[str]) -> set[str]:
    with system_scope():
        held = Allocation.objects.filter(gpu__in=list(gpus), released_at=None)
        return set(held.values_list("gpu", flat=True))
