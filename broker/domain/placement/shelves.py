"""The cards of one kind in one pool: numbers for the buckets, ids for everybody else."""

from collections.abc import Iterator, Sequence

from broker.domain.placement.buckets import Buckets
from broker.domain.placement.kinds import Kind
from broker.domain.placement.lowest import Lowest
from broker.domain.placement.tables import EMPTY, NOWHERE


class Nodes:
    """The nodes of a pool by number and by name."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        """Return the number of a node; one that was never heard of gets the next."""
        number = self.numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number


class Shelf:
    """Cards that are cut alike, in buckets of equal state, and the lowest id of each bucket."""

    def __init__(
        self, kind: Kind, gpus: Sequence[str], nodes: Sequence[int], states: Sequence[int], known: Nodes
    ) -> None:
        """Take cards with the numbers of their nodes, which are known, as are those of nodes to come."""
        self.kind, self.buckets = kind, Buckets(kind.ranks, nodes, states)
        self.gpus, self._known = list(gpus), known
        self._at = {gpu: card for card, gpu in enumerate(self.gpus)}
        self._gone: list[int] = []  # numbers of cards that have left, for those that come
        self._cards = Lowest(self._is_in)
        self._nodes = Lowest(self._has_empty)

    def state(self, gpu: str) -> int:
        return self.buckets.state[self._at[gpu]]

    def add(self, gpu: str, node: int, state: int) -> None:
        """Take a card in."""
        if self._gone:
            card = self._gone.pop()
            self.gpus[card] = gpu
            self.buckets.add_again(card, node, state)
        else:
            card = self.buckets.add(node, state)
            self.gpus.append(gpu)
        self._at[gpu] = card
        self._changed(card, NOWHERE)

    def remove(self, gpu: str) -> None:
        """Take a card out."""
        self.become(gpu, NOWHERE)
        self._gone.append(self._at.pop(gpu))

    def become(self, gpu: str, state: int) -> None:
        """Let a card be in another state."""
        card = self._at[gpu]
        before = self.buckets.state[card]
        self.buckets.become(card, state)
        self._changed(card, before)

    def first(self, state: int) -> str:
        """Return the card with the lowest id of those in a state; there must be one."""
        return self._cards.first(state, lambda: map(self.gpus.__getitem__, self.buckets.cards[state]))

    def first_empty(self) -> str:
        """Return an empty card of the node with fewest: whole nodes stay whole for gangs. There must be one."""
        empty = self.buckets.empty
        nodes = empty.with_(empty.fewest)
        name = self._nodes.first(empty.fewest, lambda: map(self._known.names.__getitem__, nodes))
        return min(map(self.gpus.__getitem__, empty.on[self._known.numbers[name]]))

    def cards_in(self, state: int) -> Iterator[tuple[str, str]]:
        """Name all cards in a state, each with its node."""
        for card in self.buckets.cards[state]:
            yield self.gpus[card], self._known.names[self.buckets.node[card]]

    def _changed(self, card: int, before: int) -> None:
        state, empty = self.buckets.state[card], self.buckets.empty
        self._cards.enter(state, self.gpus[card], len(self.buckets.cards[state]))
        node = self.buckets.node[card]
        if EMPTY in (before, state) and (count := len(empty.on[node])):
            self._nodes.enter(count, self._known.names[node], len(empty.with_(count)))

    def _is_in(self, state: int, gpu: str) -> bool:
        card = self._at.get(gpu)
        return card is not None and self.buckets.state[card] == state

    def _has_empty(self, count: int, name: str) -> bool:
        return len(self.buckets.empty.on[self._known.numbers[name]]) == count
