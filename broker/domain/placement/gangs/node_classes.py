"""Node classes: nodes equal for a gang, of which only the first is examined."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from broker.domain.geometry.profiles import Profile
from broker.domain.placement.buckets.lowest_names import HEAP_SLACK
from broker.domain.placement.gangs.topology import GpuLink, LinkMatrix, Topology
from broker.domain.placement.gpu_kinds import GpuKind
from broker.domain.placement.slots import Slot

NodeClass = tuple[object, ...]


class GangCandidate(NamedTuple):
    """A GPU of a node that may take part in a gang."""

    gpu: str
    kind: GpuKind
    profile_number: int  # on GPUs of this kind
    state: int
    unpartitioned: bool

    @property
    def equivalence_key(self) -> tuple[int, int]:
        """Return what GPUs of equal use to a gang have in common."""
        return id(self.kind), self.state


class GangChoice(NamedTuple):
    """Slots for a gang on one node, with the criteria that rank nodes."""

    newly_used_gpus: int
    value_loss: float
    empty_gpus: int  # of the node, before the gang is placed
    longest_link: GpuLink
    node: str
    slots: tuple[Slot, ...]


FindFitting = Callable[
    [Iterable[str], Profile], list[GangCandidate]
]  # returns those of some GPUs on which a profile fits
FindOnAllNodes = Callable[[Profile], Mapping[str, list[GangCandidate]]]  # returns those of all GPUs, by node


class NodeIndex:
    """The GPUs of a pool by node, with node classes per profile."""

    def __init__(
        self, gpus: Iterable[tuple[str, str]], *, find_fitting: FindFitting, find_on_all_nodes: FindOnAllNodes
    ) -> None:
        """Take all GPUs, each with its node."""
        self.gpus_on_node: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._find_fitting, self._find_on_all_nodes = find_fitting, find_on_all_nodes
        self._classes: dict[Profile, NodeClasses] = {}
        for gpu, node in gpus:
            self.gpus_on_node[node][gpu] = None

    def classes_for(self, profile: Profile, *, whole_gpu: bool) -> "NodeClasses":
        """Return the node classes for a profile; links matter only for whole GPUs."""
        found = self._classes.get(profile)
        if found is None:
            found = self._classes[profile] = NodeClasses(
                self.gpus_on_node,
                lambda gpus: self._find_fitting(gpus, profile),
                lambda: self._find_on_all_nodes(profile),
                whole_gpu=whole_gpu,
            )
        return found

    def add_gpu(self, gpu: str, node: str) -> None:
        self.gpus_on_node[node][gpu] = None
        self.mark_changed(node)

    def remove_gpu(self, gpu: str, node: str) -> None:
        del self.gpus_on_node[node][gpu]
        self.mark_changed(node)

    def mark_changed(self, node: str) -> None:
        """Record that the state or the links of a node's GPUs changed."""
        for each in self._classes.values():
            each.stale.add(node)


class NodeClasses:
    """Node classes of one profile; nodes of one class cost a gang the same.

    Changes of a node are processed when the next gang is requested, once, however often it changed. The
    result for the first node of a class is cached per gang size until something changes there.
    """

    def __init__(
        self,
        gpus_on_node: Mapping[str, Mapping[str, None]],
        find_fitting: Callable[[Iterable[str]], list[GangCandidate]],
        find_on_all_nodes: Callable[[], Mapping[str, list[GangCandidate]]],
        *,
        whole_gpu: bool,
    ) -> None:
        self._gpus_on_node, self._find_fitting, self._find_on_all_nodes, self._whole_gpu = (
            gpus_on_node,
            find_fitting,
            find_on_all_nodes,
            whole_gpu,
        )
        self._topologies: Mapping[str, Topology] = {}  # none yet
        self._links: dict[LinkMatrix, int] = {}
        # Comparing matrices each time would dominate the cost. Each matrix is stored, so that its id is not reused.
        self._numbered: dict[int, tuple[LinkMatrix, int]] = {}
        self._class_of: dict[str, NodeClass] = {}  # by node
        self._nodes_by_class: dict[NodeClass, _EqualNodes] = {}
        self.stale: set[str] = set()
        self._choices: defaultdict[int, dict[str, GangChoice | None]] = defaultdict(dict)

    def first_nodes(self, topologies: Mapping[str, Topology]) -> list[str]:
        """Return the first node of each class.

        A caller that passes the same mapping again reports which nodes are stale.
        """
        if topologies is not self._topologies:
            self._classify_all(topologies)
        for node in self.stale:
            self._classify(node)
        self.stale.clear()
        return [alike.first() for alike in self._nodes_by_class.values()]

    def members(self, node: str) -> list[GangCandidate]:
        """Return the GPUs of a node on which the profile fits."""
        return self._find_fitting(self._gpus_on_node[node])

    def cached_choices(self, count: int) -> dict[str, GangChoice | None]:
        """Return cached results for gangs of this size, by node.

        A node's result is dropped when anything changes on it.
        """
        return self._choices[count]

    def _classify_all(self, topologies: Mapping[str, Topology]) -> None:
        """Classify all nodes with room, which are mostly few and found without search."""
        self._topologies = topologies
        self._class_of.clear()
        self._nodes_by_class.clear()
        self._choices.clear()
        self.stale.clear()
        for node, members in self._find_on_all_nodes().items():
            self._add(node, self._build_class(node, members))

    def _classify(self, node: str) -> None:
        for known in self._choices.values():
            known.pop(node, None)
        members, before = self.members(node), self._class_of.get(node)
        node_class = self._build_class(node, members) if members else None
        if node_class == before:
            return
        if before is not None:
            self._remove(node, before)
        if node_class is not None:
            self._add(node, node_class)

    def _add(self, node: str, node_class: NodeClass) -> None:
        self._class_of[node] = node_class
        self._nodes_by_class.setdefault(node_class, _EqualNodes()).add(node)

    def _remove(self, node: str, node_class: NodeClass) -> None:
        del self._class_of[node]
        alike = self._nodes_by_class[node_class]
        alike.nodes.discard(node)
        if not alike.nodes:
            del self._nodes_by_class[node_class]

    def _build_class(self, node: str, members: list[GangCandidate]) -> NodeClass:
        """Return the class of a node, by its GPUs on which the profile fits."""
        topology = self._topologies.get(node) if self._whole_gpu else None
        if topology is None:
            return tuple(sorted(each.equivalence_key for each in members))
        likeness = {each.gpu: each.equivalence_key for each in members}
        placed = tuple(likeness.pop(gpu, None) for gpu in topology.gpus)
        return self._number(topology.links), placed, tuple(sorted(likeness.values()))

    def _number(self, links: LinkMatrix) -> int:
        """Return a number that equal link matrices share."""
        known = self._numbered.get(id(links))
        if known is None:
            known = self._numbered[id(links)] = links, self._links.setdefault(links, len(self._links))
        return known[1]


class _EqualNodes:
    """Nodes of one class; removed ones are skipped when they come up."""

    def __init__(self) -> None:
        self.nodes: set[str] = set()
        self._heap: list[str] = []

    def add(self, node: str) -> None:
        self.nodes.add(node)
        if len(self._heap) > 2 * len(self.nodes) + HEAP_SLACK:  # most of its nodes are outdated
            self._heap = list(self.nodes)
            heapify(self._heap)
        else:
            heappush(self._heap, node)

    def first(self) -> str:
        while self._heap[0] not in self.nodes:
            heappop(self._heap)
        return self._heap[0]
