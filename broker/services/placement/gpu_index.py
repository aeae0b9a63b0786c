"""All GPUs of the fleet in memory, with an index for each kind of request."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.costs.engines import PlacementEngine
from broker.domain.placement.gangs.topology import GpuLinks, Topology, topology_of
from broker.domain.placement.pool import GpuView, PoolIndex
from broker.domain.placement.shares.share_pool import SharePool
from broker.services.inventory.gpu_catalogue import gpu_model_spec
from broker.services.placement.placement_gpus import PlacementGpu, PoolKey

DEDICATED = (Isolation.DEVICE, Isolation.HARDWARE)
RequestKind = tuple[PoolKey, str, Isolation]  # the cluster's name; empty: all clusters


class RequestIndex:
    """GPUs for one kind of request, with the domain's ranked index."""

    def __init__(self, kind: RequestKind, engine: PlacementEngine) -> None:
        self.pool, self.cluster, self.isolation = kind
        self._engine = engine
        self.gpus: dict[str, PlacementGpu] = {}
        self.best = self._ranked(())

    def take(self, gpu: PlacementGpu) -> None:
        """Add or update a GPU."""
        self.drop(gpu.gpu)
        self.gpus[gpu.gpu] = gpu
        self.best.add(gpu.view)

    def fill(self, gpus: Iterable[PlacementGpu]) -> None:
        """Replace all GPUs."""
        self.gpus = {gpu.gpu: gpu for gpu in gpus}
        self.best = self._ranked(gpu.view for gpu in self.gpus.values())

    def _ranked(self, gpus: Iterable[GpuView]) -> PoolIndex | SharePool:
        """Return the domain's index: slices and shares are ranked by different rules."""
        model = gpu_model_spec(self.pool[0])
        if self.isolation in DEDICATED:
            return PoolIndex(model, gpus, engine=self._engine)
        return SharePool(model, self.isolation, gpus)

    def drop(self, gpu_id: str) -> PlacementGpu | None:
        if (gpu := self.gpus.pop(gpu_id, None)) is not None:
            self.best.remove(gpu_id)
        return gpu

    @contextmanager
    def changed(
        self,
        *,
        without: Collection[str],
        along: Iterable[PlacementGpu],
        instead: Iterable[PlacementGpu] = (),
    ) -> Iterator[None]:
        """Remove some GPUs, add others and replace some until the block ends."""
        other_view = [gpu for gpu in instead if gpu.gpu not in without]
        dropped = dict.fromkeys((*without, *(gpu.gpu for gpu in other_view)))
        gone = [gpu for gpu_id in dropped if (gpu := self.drop(gpu_id))]
        come = [*other_view, *(gpu for gpu in along if gpu.gpu not in self.gpus and gpu.gpu not in dropped)]
        for gpu in come:
            self.take(gpu)
        try:
            yield
        finally:
            for gpu in come:
                self.drop(gpu.gpu)
            for gpu in gone:
                self.take(gpu)


class NodeTopologies(Mapping[str, Topology]):
    """GPU topology of the nodes that report it, computed on first use."""

    def __init__(self, by_node: Mapping[str, Mapping[str, PlacementGpu]]) -> None:
        self._by_node = by_node
        self._known: dict[str, Topology | None] = {}

    def __getitem__(self, node: str) -> Topology:
        if node not in self._known:
            gpus = sorted(self._by_node.get(node, {}).values(), key=lambda gpu: gpu.index)
            self._known[node] = topology_of([GpuLinks(gpu.gpu, gpu.fabric, gpu.numa) for gpu in gpus])
        if (known := self._known[node]) is None:
            raise KeyError(node)
        return known

    def __iter__(self) -> Iterator[str]:
        return (node for node in self._by_node if node in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def forget(self, node: str) -> None:
        """Discard a node's topology: its GPUs changed."""
        self._known.pop(node, None)


class GpuIndex:
    """All GPUs by id, node and pool. Callers hold the keeper's lock."""

    def __init__(self, engine: PlacementEngine = PlacementEngine.BID_PRICE) -> None:
        self._engine = engine
        self.gpus: dict[str, PlacementGpu] = {}
        self.by_node: defaultdict[str, dict[str, PlacementGpu]] = defaultdict(dict)
        self.by_pool: defaultdict[PoolKey, dict[str, PlacementGpu]] = defaultdict(dict)
        self._in_service: defaultdict[PoolKey, Counter[str]] = defaultdict(Counter)  # GPUs by cluster
        self.links = NodeTopologies(self.by_node)
        self._indexes: dict[RequestKind, RequestIndex] = {}
        self.promised_to: defaultdict[str, set[str]] = defaultdict(set)  # by waiting lease, the GPUs of its slots

    def put(self, gpus: Iterable[PlacementGpu]) -> None:
        """Add or update GPUs."""
        nodes, linked = set(), set()
        for gpu in gpus:
            if (before := self._forget(gpu.gpu)) is not None:
                nodes.add(before.node)
            if before is None or before.wiring != gpu.wiring:
                linked |= {gpu.node, before.node if before else gpu.node}
            self.gpus[gpu.gpu] = self.by_node[gpu.node][gpu.gpu] = gpu
            self.by_pool[gpu.pool][gpu.gpu] = gpu
            self._in_service[gpu.pool][gpu.cluster] += gpu.sellable
            self._enter(gpu)
            for slot in gpu.promised:
                self.promised_to[slot.lease_id].add(gpu.gpu)
            nodes.add(gpu.node)
        self._link_anew(linked)
        self._update_nodes(nodes)

    def drop(self, gpus: Iterable[str]) -> None:
        """Remove GPUs that no longer exist."""
        nodes = {gpu.node for gpu_id in gpus if (gpu := self._forget(gpu_id)) is not None}
        self._link_anew(nodes)
        self._update_nodes(nodes)

    def index(self, pool: PoolKey, isolation: Isolation, cluster: str = "") -> RequestIndex:
        """Return the index for a kind of request, created on first use."""
        # GPUs sold in slices are sold whole as well: one index for both.
        kind = pool, cluster, Isolation.HARDWARE if isolation is Isolation.DEVICE else isolation
        if (index := self._indexes.get(kind)) is None:
            index = self._indexes[kind] = RequestIndex(kind, self._engine)
            index.fill(gpu for gpu in self.by_pool[pool].values() if self._belongs(gpu, index))
        return index

    def clusters(self, pool: PoolKey) -> list[str]:
        """Return a pool's clusters, smallest first: large ones are kept for large requests."""
        counts = self._in_service[pool]
        return sorted((name for name in counts if counts[name]), key=lambda name: (counts[name], name))

    def shared_only_with(self, index: RequestIndex, mine: Mapping[str, int]) -> list[PlacementGpu]:
        """Return GPUs on which only this tenant has placements: it may add more."""
        if index.isolation in DEDICATED:
            return []
        nodes = {self.gpus[gpu_id].node for gpu_id in mine if gpu_id in self.gpus}
        candidates = [gpu for node in nodes for gpu in self.by_node[node].values()]
        return [gpu for gpu in candidates if self._fits_kind(gpu, index) and self._alone(gpu, mine)]

    def may_serve(self, gpu: PlacementGpu, index: RequestIndex) -> bool:
        """Return whether every tenant may use a GPU in a planned state."""
        if not self._fits_kind(gpu, index):
            return False
        alone = gpu.placement_count == 0 and not gpu.picked_by_node
        return index.isolation in DEDICATED or gpu.shares_soft or alone

    def _forget(self, gpu_id: str) -> PlacementGpu | None:
        gpu = self.gpus.pop(gpu_id, None)
        if gpu is not None:
            del self.by_node[gpu.node][gpu_id]
            del self.by_pool[gpu.pool][gpu_id]
            self._in_service[gpu.pool][gpu.cluster] -= gpu.sellable
            for slot in gpu.promised:
                self.promised_to[slot.lease_id].discard(gpu_id)
                if not self.promised_to[slot.lease_id]:
                    del self.promised_to[slot.lease_id]
            for index in self._indexes.values():
                index.drop(gpu_id)
        return gpu

    def _link_anew(self, nodes: Iterable[str]) -> None:
        """Discard the topology of some nodes and update the indexes."""
        for node in nodes:
            self.links.forget(node)
            for index in self._indexes.values():
                index.best.mark_links_changed(node)

    def _update_nodes(self, nodes: Iterable[str]) -> None:
        """Update the shared GPUs of nodes whose occupants changed.

        On a node that assigns shares itself, whoever is on one GPU may be on any.
        """
        if self._indexes:
            for node in nodes:
                for gpu in self.by_node[node].values():
                    if gpu.picked_by_node:
                        self._enter(gpu)

    def _enter(self, gpu: PlacementGpu) -> None:
        for index in self._indexes.values():
            if self._belongs(gpu, index):
                index.take(gpu)
            else:
                index.drop(gpu.gpu)

    def _belongs(self, gpu: PlacementGpu, index: RequestIndex) -> bool:
        """Return whether every tenant may use it.

        Without hardware isolation only an empty GPU may be used, or one whose owner allows sharing.
        """
        if not self._fits_kind(gpu, index):
            return False
        return index.isolation in DEDICATED or gpu.shares_soft or self._alone(gpu, {})

    def _fits_kind(self, gpu: PlacementGpu, index: RequestIndex) -> bool:
        return (
            gpu.sellable
            and gpu.pool == index.pool
            and index.cluster in ("", gpu.cluster)
            and gpu.sold_as(index.isolation)
        )

    def _alone(self, gpu: PlacementGpu, mine: Mapping[str, int]) -> bool:
        there = self.by_node[gpu.node].values() if gpu.picked_by_node else [gpu]
        return all(each.placement_count == mine.get(each.gpu, 0) for each in there)
