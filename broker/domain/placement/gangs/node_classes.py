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
    number: int  # number of the profile on GPUs of this kind
    state: int
    uncut: bool

    @property
    def equivalence_key(self) -> tuple[int, int]:
        """Return what GPUs of equal use to a gang have in common."""
        return id(self.kind), self.state


class GangChoice(NamedTuple):
    """Slots for a gang on one node, with the criteria that rank nodes."""

    opened: int
    loss: float
    empty: int
    link: GpuLink
    node: str
    slots: tuple[Slot, ...]


FindFitting = Callable[
    [Iterable[str], Profile], list[GangCandidate]
]  # returns those of some GPUs on which a profile fits
FindOnAllNodes = Callable[[Profile], Mapping[str, list[GangCandidate]]]  # returns those of all GPUs, by node


class NodeIndex:
    """The GPUs of a pool by node, with node classes per profile."""

    def __init__(self, gpus: Iterable[tuple[str, str]], *, fitting: FindFitting, everywhere: FindOnAllNodes) -> None:
        """Take all GPUs, each with its node."""
        self.on: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._fitting, self._everywhere = fitting, everywhere
        self._makes: dict[Profile, NodeClasses] = {}
        for gpu, node in gpus:
            self.on[node][gpu] = None

    def classes_for(self, profile: Profile, *, whole: bool) -> "NodeClasses":
        """Return the node classes for a profile; links matter only for whole GPUs."""
        found = self._makes.get(profile)
        if found is None:
            found = self._makes[profile] = NodeClasses(
                self.on, lambda gpus: self._fitting(gpus, profile), lambda: self._everywhere(profile), whole=whole
            )
        return found

    def add_gpu(self, gpu: str, node: str) -> None:
        self.on[node][gpu] = None
        self.mark_changed(node)

    def remove_gpu(self, gpu: str, node: str) -> None:
        del self.on[node][gpu]
        self.mark_changed(node)

    def mark_changed(self, node: str) -> None:
        """Record that the state or the links of a node's GPUs changed."""
        for each in self._makes.values():
            each.stale.add(node)


class NodeClasses:
    """Node classes of one profile; nodes of one class cost a gang the same.

    Changes of a node are processed when the next gang is requested, once, however often it changed. The
    result for the first node of a class is cached per gang size until something changes there.
    """

    def __init__(
        self,
        on: Mapping[str, Mapping[str, None]],
        fitting: Callable[[Iterable[str]], list[GangCandidate]],
        everywhere: Callable[[], Mapping[str, list[GangCandidate]]],
        *,
        whole: bool,
    ) -> None:
        self._on, self._fitting, self._everywhere, self._whole = on, fitting, everywhere, whole
        self._topologies: Mapping[str, Topology] = {}  # none yet
        self._links: dict[LinkMatrix, int] = {}
        # Comparing matrices each time would dominate the cost. Each matrix is stored, so that its id is not reused.
        self._numbered: dict[int, tuple[LinkMatrix, int]] = {}
        self._make: dict[str, NodeClass] = {}  # by node
        self._alike: dict[NodeClass, _EqualNodes] = {}
        self.stale: set[str] = set()
        self._known: defaultdict[int, dict[str, GangChoice | None]] = defaultdict(dict)

    def first_nodes(self, topologies: Mapping[str, Topology]) -> list[str]:
        """Return the first node of each class.

        A caller that passes the same mapping again reports which nodes are stale.
        """
        if topologies is not self._topologies:
            self._begin(topologies)
        for node in self.stale:
            self._classify(node)
        self.stale.clear()
        return [alike.first() for alike in self._alike.values()]

    def members(self, node: str) -> list[GangCandidate]:
        """Return the GPUs of a node on which the profile fits."""
        return self._fitting(self._on[node])

    def cached_choices(self, count: int) -> dict[str, GangChoice | None]:
        """Return cached results for gangs of this size, by node.

        A node's result is dropped when anything changes on it.
        """
        return self._known[count]

    def _begin(self, topologies: Mapping[str, Topology]) -> None:
        """Classify all nodes with room, which are mostly few and found without search."""
        self._topologies = topologies
        self._make.clear()
        self._alike.clear()
        self._known.clear()
        self.stale.clear()
        for node, members in self._everywhere().items():
            self._join(node, self._made(node, members))

    def _classify(self, node: str) -> None:
        for known in self._known.values():
            known.pop(node, None)
        members, before = self.members(node), self._make.get(node)
        make = self._made(node, members) if members else None
        if make == before:
            return
        if before is not None:
            self._leave(node, before)
        if make is not None:
            self._join(node, make)

    def _join(self, node: str, make: NodeClass) -> None:
        self._make[node] = make
        self._alike.setdefault(make, _EqualNodes()).add(node)

    def _leave(self, node: str, make: NodeClass) -> None:
        del self._make[node]
        alike = self._alike[make]
        alike.nodes.discard(node)
        if not alike.nodes:
            del self._alike[make]

    def _made(self, node: str, members: list[GangCandidate]) -> NodeClass:
        """Return the class of a node, by its GPUs on which the profile fits."""
        topology = self._topologies.get(node) if self._whole else None
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
