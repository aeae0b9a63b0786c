"""Many cards of one kind by the state they are in: where a slice goes is read off, however many there are.

Cards and nodes are numbers here, and so are profiles and states: this is the loop that everything waits for.
"""

from collections.abc import Iterable, Sequence

from broker.domain.placement.ranks import Ranks
from broker.domain.placement.tables import EMPTY, NOWHERE


class Buckets:
    """Cards in buckets of equal state; by profile a map with one bit for every state in which there is a card."""

    def __init__(self, ranks: Ranks, nodes: Sequence[int], states: Sequence[int] | None = None) -> None:
        """Take one card for each entry, which is the number of its node; empty unless `states` says otherwise."""
        self.ranks, self.table = ranks, ranks.table
        self.node = list(nodes)
        self.state = [EMPTY] * len(nodes) if states is None else list(states)
        # The last bucket is of those that are NOWHERE: taken out of the pool.
        self.cards: list[list[int]] = [[] for _ in (*self.table.states, NOWHERE)]
        self._at = [0] * len(nodes)  # where in its bucket a card stands
        self.live = [0] * len(self.table.profiles)
        self.empty = Empties(max(nodes, default=-1) + 1)
        for card, at in enumerate(self.state):
            self._at[card] = len(self.cards[at])
            self.cards[at].append(card)
        for at, bucket in enumerate(self.cards):
            if bucket:
                self._light(at)
        self.empty.fill((self.node[card], card) for card in self.cards[EMPTY])

    def place(self, profile: int) -> tuple[int, int] | None:
        """Put a slice where it costs least and return its card and first unit, or None when it fits nowhere."""
        live = self.live[profile]
        if not live:
            return None
        state = self.ranks.order[profile][(live & -live).bit_length() - 1]
        card = self.cards[state][-1] if state else self.empty.first()
        start, after = self.ranks.best[profile][state]
        self.become(card, after)
        return card, start

    def release(self, card: int, profile: int, start: int) -> None:
        """Take a slice off; raises KeyError for one that is not there."""
        after = self.table.gone[profile][start][self.state[card]]
        if after == NOWHERE:
            raise KeyError(f"nothing of profile {profile} is at unit {start} of card {card}")
        self.become(card, after)

    def hold(self, card: int, profile: int, start: int) -> None:
        """Put a slice at a place of the caller's choosing; raises KeyError where it does not fit."""
        after = self.table.put[profile][start][self.state[card]]
        if after == NOWHERE:
            raise KeyError(f"profile {profile} does not fit at unit {start} of card {card}")
        self.become(card, after)

    def add(self, node: int, state: int = EMPTY) -> int:
        """Take one more card in and return its number."""
        card = len(self.node)
        self.node.append(node)
        self.state.append(state)
        self._at.append(0)
        self.empty.grow(node + 1)
        self._enter(card, state)
        return card

    def remove(self, card: int) -> None:
        """Take a card out; its number is used again where a caller says so. Raises KeyError for one that is out."""
        if self.state[card] == NOWHERE:
            raise KeyError(f"card {card} is out already")
        self.become(card, NOWHERE)

    def become(self, card: int, state: int) -> None:
        """Let a card be in another state."""
        if self.state[card] != state:
            self._leave(card)
            self._enter(card, state)

    def _leave(self, card: int) -> None:
        before = self.state[card]
        bucket, at = self.cards[before], self._at[card]
        last = bucket.pop()
        if last != card:
            bucket[at], self._at[last] = last, at
        if not bucket:
            for profile, bits in enumerate(self.ranks.bit):
                self.live[profile] &= ~bits[before]
        if before == EMPTY:
            self.empty.take(self.node[card], card)

    def _enter(self, card: int, state: int) -> None:
        bucket = self.cards[state]
        if not bucket:
            self._light(state)
        self.state[card], self._at[card] = state, len(bucket)
        bucket.append(card)
        if state == EMPTY:
            self.empty.give(self.node[card], card)

    def _light(self, state: int) -> None:
        for profile, bits in enumerate(self.ranks.bit):
            self.live[profile] |= bits[state]


class Empties:
    """Empty cards by how many there are on their node: the node with fewest is opened first, whole ones stay whole."""

    def __init__(self, nodes: int) -> None:
        self.on: list[list[int]] = [[] for _ in range(nodes)]
        self._with: list[list[int]] = [[]]  # nodes by how many empty cards they have
        self._at = [0] * nodes
        self._counts = 0  # one bit for every count that a node has, from 1 up

    def fill(self, cards: Iterable[tuple[int, int]]) -> None:
        """Take in the first cards, each after its node."""
        for node, card in cards:
            self.on[node].append(card)
        for node in range(len(self.on)):
            self._join(node)

    def grow(self, nodes: int) -> None:
        """Make room for nodes of higher numbers."""
        more = nodes - len(self.on)
        if more > 0:
            self.on += [[] for _ in range(more)]
            self._at += [0] * more

    @property
    def fewest(self) -> int:
        """How many the node with fewest has; nought where there is none at all."""
        return (self._counts & -self._counts).bit_length()

    def first(self) -> int:
        """Return an empty card of the node with fewest; there must be one."""
        return self.on[self._with[(self._counts & -self._counts).bit_length()][-1]][-1]

    def with_(self, count: int) -> Sequence[int]:
        """Return the nodes that have exactly so many."""
        return self._with[count]

    def node_with(self, count: int) -> int | None:
        """Return the node with fewest empty cards of those with so many or more."""
        counts = self._counts >> (count - 1) << (count - 1)
        return self._with[(counts & -counts).bit_length()][-1] if counts else None

    def give(self, node: int, card: int) -> None:
        self._leave(node)
        self.on[node].append(card)
        self._join(node)

    def take(self, node: int, card: int) -> None:
        self._leave(node)
        self.on[node].remove(card)
        self._join(node)

    def _leave(self, node: int) -> None:
        if not (count := len(self.on[node])):
            return
        nodes, at = self._with[count], self._at[node]
        last = nodes.pop()
        if last != node:
            nodes[at], self._at[last] = last, at
        if not nodes:
            self._counts &= ~(1 << (count - 1))

    def _join(self, node: int) -> None:
        if not (count := len(self.on[node])):
            return
        while len(self._with) <= count:
            self._with.append([])
        self._at[node] = len(self._with[count])
        self._with[count].append(node)
        self._counts |= 1 << (count - 1)
