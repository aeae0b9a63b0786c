"""The cards of one kind in one pool: numbers for the buckets, ids for everybody else."""

from collections.abc import Iterator, Sequence

from broker.domain.placement.kinds import Kind
from broker.domain.placement.lowest import Lowest
from broker.domain.placement.tables import EMPTY, NOWHERE
from broker.domain.placement.warm_buckets import WarmBuckets


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
    """Cards that are cut alike, in buckets of equal state and cells of what is left cut, and the lowest id of each."""

    def __init__(
        self,
        kind: Kind,
        gpus: Sequence[str],
        nodes: Sequence[int],
        states: Sequence[int],
        left: Sequence[int],
        known: Nodes,
    ) -> None:
        """Take cards with the numbers of their nodes, which are known, as are those of nodes to come."""
        self.kind, self.buckets = kind, WarmBuckets(kind.ranks, nodes, states, left, kind.seats)
        self.gpus, self._known = list(gpus), known
        self._at = {gpu: card for card, gpu in enumerate(self.gpus)}
        self._gone: list[int] = []  # numbers of cards that have left, for those that come
        self._cards = Lowest(self._is_in)
        self._nodes = Lowest(self._has_empty)

    def state(self, gpu: str) -> int:
        return self.buckets.state[self._at[gpu]]

    def add(self, gpu: str, node: int, state: int, left: int) -> None:
        """Take a card in, with what is left cut on it."""
        if self._gone:
            card = self._gone.pop()
            self.gpus[card] = gpu
            self.buckets.add_again(card, node, state, left)
        else:
            card = self.buckets.add(node, state, left)
            self.gpus.append(gpu)
        self._at[gpu] = card
        self._changed(card, NOWHERE)

    def remove(self, gpu: str) -> None:
        """Take a card out."""
        self.become(gpu, NOWHERE, 0)
        self._gone.append(self._at.pop(gpu))

    def become(self, gpu: str, state: int, left: int) -> None:
        """Let a card be in another state, with this left cut on it."""
        card = self._at[gpu]
        before = self.buckets.state[card]
        self.buckets.be(card, state, left)
        self._changed(card, before)

    def first(self, state: int) -> str:
        """Return the card with the lowest id of those in a state on which nothing is left cut; there must be one."""
        return self._lowest(state, self.buckets.cards[state])

    def quickest(self, number: int, rank: int) -> tuple[str, int]:
        """Return the card that has a profile most quickly of those that cost as much as a rank, and the first unit.

        Of equals, the one in the state that comes first, and of these the one with the lowest id.
        """
        buckets, bits = self.buckets, self.kind.ranks.bit[number]
        _, cells, cold = buckets.offer(number, rank)
        if not cells:
            state = self.kind.ranks.order[number][(cold & -cold).bit_length() - 1]
            return self.first(state), self.kind.ranks.best[number][state].start
        named = buckets.named(cells)
        first = min([cold & -cold] * bool(cold) + [bits[cell.state] for cell in named])
        found = [
            (self._lowest(buckets.key_of(cell), cell.cards), cell.ways[number][1])
            for cell in named
            if bits[cell.state] == first
        ]
        if cold & first:
            state = self.kind.ranks.order[number][first.bit_length() - 1]
            found.append((self.first(state), self.kind.ranks.best[number][state].start))
        return min(found)

    def quickest_empty(self, number: int) -> tuple[str, int]:
        """Return the same of the empty cards of the node with fewest: whole nodes stay whole for gangs.

        There must be one.
        """
        empty = self.buckets.empty
        nodes = empty.with_(empty.fewest)
        name = self._nodes.first(empty.fewest, lambda: map(self._known.names.__getitem__, nodes))
        ways = [
            (how, self.gpus[card], start)
            for card in empty.on[self._known.numbers[name]]
            for how, start in [self.buckets.way(number, card)]
        ]
        return min(ways)[1:]

    def cards_in(self, state: int) -> Iterator[tuple[str, str]]:
        """Name all cards in a state, each with its node."""
        for card in self.buckets.in_state(state):
            yield self.gpus[card], self._known.names[self.buckets.node[card]]

    def _changed(self, card: int, before: int) -> None:
        state, empty = self.buckets.state[card], self.buckets.empty
        self._cards.enter(self.buckets.key(card), self.gpus[card], len(self.buckets.beside(card)))
        node = self.buckets.node[card]
        if EMPTY in (before, state) and (count := len(empty.on[node])):
            self._nodes.enter(count, self._known.names[node], len(empty.with_(count)))

    def _lowest(self, key: int, cards: Sequence[int]) -> str:
        return self._cards.first(key, lambda: map(self.gpus.__getitem__, cards))

    def _is_in(self, key: int, gpu: str) -> bool:
        card = self._at.get(gpu)
        return card is not None and self.buckets.key(card) == key

    def _has_empty(self, count: int, name: str) -> bool:
        return len(self.buckets.empty.on[self._known.numbers[name]]) == count
