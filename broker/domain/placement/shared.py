"""Nodes whose cards are shared: where a request costs least, without asking every node again each time."""

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple, Protocol

from broker.domain.placement.rooms import Held, Request, Room


class Bid(NamedTuple):
    """What holding a request on a node costs, on the cards that cost least there; smaller is better."""

    cost: float
    cards: tuple[int, ...]


class Rule(Protocol):
    """A way to choose: it may look at one node and the request, at nothing else."""

    def bid(self, room: Room, request: Request) -> Bid | None:
        """Return the best way to hold a request on a node, or None where it does not fit."""


class SharedNodes:
    """Nodes, and for every kind of request the bids of all nodes, cheapest first.

    A bid stays true until its node changes. Which nodes changed since a kind was last asked for is known, so
    only they bid again; the others' bids wait in a heap.
    """

    def __init__(self, rooms: Sequence[Room], kinds: Sequence[Request], rule: Rule) -> None:
        self.rooms, self.kinds, self._rule = [*rooms], kinds, rule
        self._tick = 0
        self._changed = dict.fromkeys(range(len(rooms)), 0)  # when a node changed, the latest last
        self._asked = [-1] * len(kinds)
        self._bids: list[list[tuple[float, int, int, tuple[int, ...]]]] = [[] for _ in kinds]

    def join(self, room: Room) -> int:
        """Take one more node in and return its number."""
        self.rooms.append(room)
        self.touch(len(self.rooms) - 1)
        return len(self.rooms) - 1

    def touch(self, node: int) -> None:
        """Let a node bid again: something about it has changed."""
        self._tick += 1
        self._changed.pop(node, None)
        self._changed[node] = self._tick

    def place(self, kind: int) -> Held | None:
        """Hold a request where it costs least and say where, or return None when it fits nowhere."""
        held = self.best(kind)
        if held:
            self.take(kind, held)
        return held

    def best(self, kind: int) -> Held | None:
        """Say where a request would cost least, or None when it fits nowhere."""
        bids, changed = self._bids[kind], self._changed
        self._hear(kind)
        while bids:
            _, node, when, cards = bids[0]
            if changed[node] == when:
                return Held(node, cards)
            heappop(bids)  # the node has changed since, and has bid again if it still can
        return None

    def take(self, kind: int, held: Held) -> None:
        """Hold a request at a place of the caller's choosing; raises ValueError where it does not fit."""
        self.rooms[held.node].take(self.kinds[kind], held.cards)
        self.touch(held.node)

    def release(self, kind: int, held: Held) -> None:
        """Let go of a request; raises ValueError for one that is not held there."""
        self.rooms[held.node].give(self.kinds[kind], held.cards)
        self.touch(held.node)

    def _hear(self, kind: int) -> None:
        """Let the nodes that changed since this kind was last asked for bid again."""
        request, rooms, bid_of = self.kinds[kind], self.rooms, self._rule.bid
        bids = self._bids[kind]
        for node, when in self._since(self._asked[kind]):
            if bid := bid_of(rooms[node], request):
                heappush(bids, (bid.cost, node, when, bid.cards))
        self._asked[kind] = self._tick
        if len(bids) > 4 * len(rooms) + 64:
            bids[:] = [bid for bid in bids if self._changed[bid[1]] == bid[2]]
            heapify(bids)

    def _since(self, asked: int) -> Iterator[tuple[int, int]]:
        for node, when in reversed(self._changed.items()):
            if when <= asked:
                return
            yield node, when
