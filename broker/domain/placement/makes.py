"""The nodes of a pool by what a gang would find on them: of equal ones nobody looks at more than the first."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from broker.domain.placement.kinds import Kind
from broker.domain.placement.lowest import SPARE
from broker.domain.placement.seats import Seat
from broker.domain.placement.topology import Link, Links, Topology
from broker.domain.profiles import Profile

Make = tuple[object, ...]


class Member(NamedTuple):
    """A card of a node that may take part in a gang."""

    gpu: str
    kind: Kind
    number: int  # of the profile on cards of this kind
    state: int
    uncut: bool

    @property
    def likeness(self) -> tuple[int, int]:
        """Return what cards have in common that are of equal use to a gang."""
        return id(self.kind), self.state


class Gang(NamedTuple):
    """A gang on one node, and what decides between nodes."""

    opened: int
    loss: float
    empty: int
    link: Link
    node: str
    seats: tuple[Seat, ...]


Fitting = Callable[[Iterable[str], Profile], list[Member]]  # those of some cards on which a profile fits
Everywhere = Callable[[Profile], Mapping[str, list[Member]]]  # those of all cards, by node


class Machines:
    """The cards of a pool by node, and for each profile that gangs asked for the makes of the nodes."""

    def __init__(self, cards: Iterable[tuple[str, str]], *, fitting: Fitting, everywhere: Everywhere) -> None:
        """Take all cards, each with its node."""
        self.on: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._fitting, self._everywhere = fitting, everywhere
        self._makes: dict[Profile, Makes] = {}
        for gpu, node in cards:
            self.on[node][gpu] = None

    def makes(self, profile: Profile, *, whole: bool) -> "Makes":
        """Return the makes of all nodes as far as a profile goes; only of whole cards do links matter."""
        found = self._makes.get(profile)
        if found is None:
            found = self._makes[profile] = Makes(
                self.on,
                lambda gpus: self._fitting(gpus, profile),
                lambda: self._everywhere(profile),
                whole=whole,
            )
        return found

    def came(self, gpu: str, node: str) -> None:
        self.on[node][gpu] = None
        self.changed(node)

    def left(self, gpu: str, node: str) -> None:
        del self.on[node][gpu]
        self.changed(node)

    def changed(self, node: str) -> None:
        """Take note that a card of a node is in another state, or that they are linked otherwise."""
        for each in self._makes.values():
            each.stale.add(node)


class Makes:
    """The nodes on which one profile fits, those of one make together; nodes of one make cost a gang the same.

    What changed on a node is looked at when the next gang asks, once, however often it changed. What was found for a
    count on the first node of a make is kept until something changes there.
    """

    def __init__(
        self,
        on: Mapping[str, Mapping[str, None]],
        fitting: Callable[[Iterable[str]], list[Member]],
        everywhere: Callable[[], Mapping[str, list[Member]]],
        *,
        whole: bool,
    ) -> None:
        self._on, self._fitting, self._everywhere, self._whole = on, fitting, everywhere, whole
        self._topologies: Mapping[str, Topology] = {}  # nobody's yet
        self._links: dict[Links, int] = {}
        # To compare a matrix each time would cost more than all the rest. Kept with it, so that no other has its id.
        self._numbered: dict[int, tuple[Links, int]] = {}
        self._make: dict[str, Make] = {}  # of each node
        self._alike: dict[Make, _Alike] = {}
        self.stale: set[str] = set()
        self._known: defaultdict[int, dict[str, Gang | None]] = defaultdict(dict)

    def firsts(self, topologies: Mapping[str, Topology]) -> list[str]:
        """Return the first node of each make. Whoever hands in the same mapping again says which nodes are stale."""
        if topologies is not self._topologies:
            self._begin(topologies)
        for node in self.stale:
            self._look_at(node)
        self.stale.clear()
        return [alike.first() for alike in self._alike.values()]

    def members(self, node: str) -> list[Member]:
        """Return the cards of a node on which the profile fits."""
        return self._fitting(self._on[node])

    def known(self, count: int) -> dict[str, Gang | None]:
        """Return what was found for gangs of so many, by node; forgotten of a node on which anything changes."""
        return self._known[count]

    def _begin(self, topologies: Mapping[str, Topology]) -> None:
        """Look at all nodes on which there is room: mostly that is few of them, and they are found without a search."""
        self._topologies = topologies
        self._make.clear()
        self._alike.clear()
        self._known.clear()
        self.stale.clear()
        for node, members in self._everywhere().items():
            self._join(node, self._made(node, members))

    def _look_at(self, node: str) -> None:
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

    def _join(self, node: str, make: Make) -> None:
        self._make[node] = make
        self._alike.setdefault(make, _Alike()).add(node)

    def _leave(self, node: str, make: Make) -> None:
        del self._make[node]
        alike = self._alike[make]
        alike.nodes.discard(node)
        if not alike.nodes:
            del self._alike[make]

    def _made(self, node: str, members: list[Member]) -> Make:
        """Return what a node is to gangs of this profile by the cards of it on which it fits."""
        topology = self._topologies.get(node) if self._whole else None
        if topology is None:
            return tuple(sorted(each.likeness for each in members))
        likeness = {each.gpu: each.likeness for each in members}
        placed = tuple(likeness.pop(gpu, None) for gpu in topology.cards)
        return self._number(topology.links), placed, tuple(sorted(likeness.values()))

    def _number(self, links: Links) -> int:
        """Return a number that equal links have in common."""
        known = self._numbered.get(id(links))
        if known is None:
            known = self._numbered[id(links)] = links, self._links.setdefault(links, len(self._links))
        return known[1]


class _Alike:
    """Nodes of one make; that one has left is noticed when it comes up."""

    def __init__(self) -> None:
        self.nodes: set[str] = set()
        self._heap: list[str] = []

    def add(self, node: str) -> None:
        self.nodes.add(node)
        if len(self._heap) > 2 * len(self.nodes) + SPARE:  # mostly nodes that came and went unseen
            self._heap = list(self.nodes)
            heapify(self._heap)
        else:
            heappush(self._heap, node)

    def first(self) -> str:
        while self._heap[0] not in self.nodes:
            heappop(self._heap)
        return self._heap[0]
