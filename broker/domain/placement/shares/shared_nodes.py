"""Find the cheapest node for a GPU share with bids cached per request kind."""

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple, Protocol

from broker.domain.placement.shares.node_capacity import HeldShare, NodeCapacity, ShareRequest


class ShareBid(NamedTuple):
    """Cost of placing a request on a node, and the GPUs it would use."""

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

    def add_node(self, capacity: NodeCapacity) -> int:
        """Add a node and return its number."""
        self.capacities.append(capacity)
        self.mark_changed(len(self.capacities) - 1)
        return len(self.capacities) - 1

    def mark_changed(self, node: int) -> None:
        """Record that a node changed, so that it bids again."""
        self._tick += 1
        self._changed.pop(node, None)
        self._changed[node] = self._tick

    def reserve_cheapest(self, kind: int) -> HeldShare | None:
        """Reserve a request at its cheapest location and return that location, or None."""
        held = self.find_cheapest(kind)
        if held:
            self.reserve_at(kind, held)
        return held

    def find_cheapest(self, kind: int) -> HeldShare | None:
        """Return the cheapest location of a request, or None when it fits nowhere."""
        bids, changed = self._bids[kind], self._changed
        self._collect_bids(kind)
        while bids:
            _, node, when, gpus = bids[0]
            if changed[node] == when:
                return HeldShare(node, gpus)
            heappop(bids)  # the node changed since, and bid again if it still can
        return None

    def reserve_at(self, kind: int, held: HeldShare) -> None:
        """Reserve a request at a given location; raise ValueError where it does not fit."""
        self.capacities[held.node].reserve(self.kinds[kind], held.gpus)
        self.mark_changed(held.node)

    def release(self, kind: int, held: HeldShare) -> None:
        """Release a request; raise ValueError where the GPUs hold less than its share."""
        self.capacities[held.node].release(self.kinds[kind], held.gpus)
        self.mark_changed(held.node)

    def _collect_bids(self, kind: int) -> None:
        """Collect new bids of the nodes that changed since this kind was last requested."""
        request, capacities, bid_of = self.kinds[kind], self.capacities, self._rule.bid
        bids = self._bids[kind]
        for node, when in self._changed_since(self._read_at[kind]):
            if bid := bid_of(capacities[node], request):
                heappush(bids, (bid.cost, node, when, bid.gpus))
        self._read_at[kind] = self._tick
        if len(bids) > 4 * len(capacities) + 64:
            bids[:] = [bid for bid in bids if self._changed[bid[1]] == bid[2]]
            heapify(bids)

    def _changed_since(self, tick: int) -> Iterator[tuple[int, int]]:
        for node, when in reversed(self._changed.items()):
            if when <= tick:
                return
            yield node, when
