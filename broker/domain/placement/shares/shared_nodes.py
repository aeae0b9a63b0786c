"""Nodes with shared GPUs: find the cheapest one without asking all each time."""

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple, Protocol

from broker.domain.placement.shares.node_capacity import HeldShare, NodeCapacity, ShareRequest


class ShareBid(NamedTuple):
    """The cost of a request on a node and the GPUs; smaller is better."""

    cost: float
    gpus: tuple[int, ...]


class ShareRule(Protocol):
    """A placement rule that depends only on one node and the request."""

    def bid(self, node: NodeCapacity, request: ShareRequest) -> ShareBid | None:
        """Return the cheapest way to hold a request on a node, or None."""


class SharedNodes:
    """Nodes with cached bids per kind of request, cheapest first.

    A bid stays valid until its node changes. Which nodes changed since a kind was last requested is
    known, so only they bid again; the others' bids wait in a heap.
    """

    def __init__(self, capacities: Sequence[NodeCapacity], kinds: Sequence[ShareRequest], rule: ShareRule) -> None:
        self.capacities, self.kinds, self._rule = [*capacities], kinds, rule
        self._tick = 0
        self._changed = dict.fromkeys(range(len(capacities)), 0)  # tick at which a node changed, the latest last
        self._read_at = [-1] * len(kinds)
        self._bids: list[list[tuple[float, int, int, tuple[int, ...]]]] = [[] for _ in kinds]

    def join(self, capacity: NodeCapacity) -> int:
        """Add a node and return its number."""
        self.capacities.append(capacity)
        self.touch(len(self.capacities) - 1)
        return len(self.capacities) - 1

    def touch(self, node: int) -> None:
        """Record that a node changed, so that it bids again."""
        self._tick += 1
        self._changed.pop(node, None)
        self._changed[node] = self._tick

    def place(self, kind: int) -> HeldShare | None:
        """Hold a request where it costs least and return where, or None."""
        held = self.best(kind)
        if held:
            self.take(kind, held)
        return held

    def best(self, kind: int) -> HeldShare | None:
        """Return where a request would cost least, or None when it fits nowhere."""
        bids, changed = self._bids[kind], self._changed
        self._hear(kind)
        while bids:
            _, node, when, gpus = bids[0]
            if changed[node] == when:
                return HeldShare(node, gpus)
            heappop(bids)  # the node changed since, and bid again if it still can
        return None

    def take(self, kind: int, held: HeldShare) -> None:
        """Hold a request at a given place; raise ValueError where it does not fit."""
        self.capacities[held.node].take(self.kinds[kind], held.gpus)
        self.touch(held.node)

    def release(self, kind: int, held: HeldShare) -> None:
        """Release a request; raise ValueError for one that is not held there."""
        self.capacities[held.node].give(self.kinds[kind], held.gpus)
        self.touch(held.node)

    def _hear(self, kind: int) -> None:
        """Collect new bids of the nodes that changed since this kind was last requested."""
        request, capacities, bid_of = self.kinds[kind], self.capacities, self._rule.bid
        bids = self._bids[kind]
        for node, when in self._since(self._read_at[kind]):
            if bid := bid_of(capacities[node], request):
                heappush(bids, (bid.cost, node, when, bid.gpus))
        self._read_at[kind] = self._tick
        if len(bids) > 4 * len(capacities) + 64:
            bids[:] = [bid for bid in bids if self._changed[bid[1]] == bid[2]]
            heapify(bids)

    def _since(self, tick: int) -> Iterator[tuple[int, int]]:
        for node, when in reversed(self._changed.items()):
            if when <= tick:
                return
            yield node, when
