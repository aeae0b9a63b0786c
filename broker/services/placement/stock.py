"""All cards of the fleet in memory, and for every kind of request an index of those that may serve it."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from broker.domain.placement.engines import Engine
from broker.domain.placement.pool import CardView, PoolIndex
from broker.domain.placement.share_pool import SharePool
from broker.domain.placement.topology import Topology, Wired, wired
from broker.domain.states import Isolation
from broker.services.catalogue import spec_of
from broker.services.placement.cards import Card, Pool

WALLED = (Isolation.DEVICE, Isolation.HARDWARE)
Kind = tuple[Pool, str, Isolation]  # of which cluster, by name; empty: of all


class Index:
    """The cards for one kind of request, kept up to date, with the domain's index of them."""

    def __init__(self, kind: Kind, engine: Engine) -> None:
        self.pool, self.cluster, self.isolation = kind
        self._engine = engine
        self.cards: dict[str, Card] = {}
        self.best = self._ranked(())

    def take(self, card: Card) -> None:
        """Have a card as it is now."""
        self.drop(card.gpu)
        self.cards[card.gpu] = card
        self.best.add(card.view)

    def fill(self, cards: Iterable[Card]) -> None:
        """Have many cards at once, and no others."""
        self.cards = {card.gpu: card for card in cards}
        self.best = self._ranked(card.view for card in self.cards.values())

    def _ranked(self, cards: Iterable[CardView]) -> PoolIndex | SharePool:
        """Have the cards ranked by the rule for slices, or by the one for shares."""
        model = spec_of(self.pool[0])
        if self.isolation in WALLED:
            return PoolIndex(model, cards, engine=self._engine)
        return SharePool(model, self.isolation, cards)

    def drop(self, gpu: str) -> Card | None:
        if (card := self.cards.pop(gpu, None)) is not None:
            self.best.remove(gpu)
        return card

    @contextmanager
    def changed(self, *, without: Collection[str], along: Iterable[Card]) -> Iterator[None]:
        """Let it be without some cards and with some others until the block ends."""
        gone = [card for gpu in without if (card := self.drop(gpu))]
        come = [card for card in along if card.gpu not in self.cards and card.gpu not in without]
        for card in come:
            self.take(card)
        try:
            yield
        finally:
            for card in come:
                self.drop(card.gpu)
            for card in gone:
                self.take(card)


class Links(Mapping[str, Topology]):
    """How the cards of each node reach each other, of those nodes that tell; worked out when it is asked for."""

    def __init__(self, by_node: Mapping[str, Mapping[str, Card]]) -> None:
        self._by_node = by_node
        self._known: dict[str, Topology | None] = {}

    def __getitem__(self, node: str) -> Topology:
        if node not in self._known:
            cards = sorted(self._by_node.get(node, {}).values(), key=lambda card: card.index)
            self._known[node] = wired([Wired(card.gpu, card.fabric, card.numa) for card in cards])
        if (known := self._known[node]) is None:
            raise KeyError(node)
        return known

    def __iter__(self) -> Iterator[str]:
        return (node for node in self._by_node if node in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def forget(self, node: str) -> None:
        """Work it out anew: its cards are not what they were."""
        self._known.pop(node, None)


class Stock:
    """Every card by id, by node and by pool. Whoever changes or reads it holds the lock of its keeper."""

    def __init__(self, engine: Engine = Engine.BID_PRICE) -> None:
        self._engine = engine
        self.cards: dict[str, Card] = {}
        self.by_node: defaultdict[str, dict[str, Card]] = defaultdict(dict)
        self.by_pool: defaultdict[Pool, dict[str, Card]] = defaultdict(dict)
        self._in_service: defaultdict[Pool, Counter[str]] = defaultdict(Counter)  # cards by cluster
        self.links = Links(self.by_node)
        self._indexes: dict[Kind, Index] = {}

    def put(self, cards: Iterable[Card]) -> None:
        """Take cards in as they are now, whatever was known of them."""
        nodes, linked = set(), set()
        for card in cards:
            if (before := self._forget(card.gpu)) is not None:
                nodes.add(before.node)
            if before is None or before.wiring != card.wiring:
                linked |= {card.node, before.node if before else card.node}
            self.cards[card.gpu] = self.by_node[card.node][card.gpu] = card
            self.by_pool[card.pool][card.gpu] = card
            self._in_service[card.pool][card.cluster] += card.sellable
            self._enter(card)
            nodes.add(card.node)
        self._link_anew(linked)
        self._tell(nodes)

    def drop(self, gpus: Iterable[str]) -> None:
        """Take cards out that are there no more."""
        nodes = {card.node for gpu in gpus if (card := self._forget(gpu)) is not None}
        self._link_anew(nodes)
        self._tell(nodes)

    def index(self, pool: Pool, isolation: Isolation, cluster: str = "") -> Index:
        """Return the index for a kind of request; made when it is first asked for."""
        # Whoever cuts cards sells them whole as well: one index for both.
        kind = pool, cluster, Isolation.HARDWARE if isolation is Isolation.DEVICE else isolation
        if (index := self._indexes.get(kind)) is None:
            index = self._indexes[kind] = Index(kind, self._engine)
            index.fill(card for card in self.by_pool[pool].values() if self._belongs(card, index))
        return index

    def clusters(self, pool: Pool) -> list[str]:
        """Return the clusters of a pool, the smallest first: the large ones are kept for large requests."""
        counts = self._in_service[pool]
        return sorted((name for name in counts if counts[name]), key=lambda name: (counts[name], name))

    def shared_only_with(self, index: Index, mine: Mapping[str, int]) -> list[Card]:
        """Return the cards on which nobody is but whoever has so many places on each: they may have more there."""
        if index.isolation in WALLED:
            return []
        nodes = {self.cards[gpu].node for gpu in mine if gpu in self.cards}
        candidates = [card for node in nodes for card in self.by_node[node].values()]
        return [card for card in candidates if self._fits_kind(card, index) and self._alone(card, mine)]

    def _forget(self, gpu: str) -> Card | None:
        card = self.cards.pop(gpu, None)
        if card is not None:
            del self.by_node[card.node][gpu]
            del self.by_pool[card.pool][gpu]
            self._in_service[card.pool][card.cluster] -= card.sellable
            for index in self._indexes.values():
                index.drop(gpu)
        return card

    def _link_anew(self, nodes: Iterable[str]) -> None:
        """Look again at how the cards of nodes reach each other, whoever may be placed on them."""
        for node in nodes:
            self.links.forget(node)
            for index in self._indexes.values():
                index.best.linked_anew(node)

    def _tell(self, nodes: Iterable[str]) -> None:
        """Let the cards of nodes know that somebody came or went: on some, whoever is on one may be on any."""
        if self._indexes:
            for node in nodes:
                for card in self.by_node[node].values():
                    if card.picked_by_node:
                        self._enter(card)

    def _enter(self, card: Card) -> None:
        for index in self._indexes.values():
            if self._belongs(card, index):
                index.take(card)
            else:
                index.drop(card.gpu)

    def _belongs(self, card: Card, index: Index) -> bool:
        """Tell whether everybody may have it: without a wall only where nobody is, or where the owner allows it."""
        if not self._fits_kind(card, index):
            return False
        return index.isolation in WALLED or card.shares_soft or self._alone(card, {})

    def _fits_kind(self, card: Card, index: Index) -> bool:
        return (
            card.sellable
            and card.pool == index.pool
            and index.cluster in ("", card.cluster)
            and card.sold_as(index.isolation)
        )

    def _alone(self, card: Card, mine: Mapping[str, int]) -> bool:
        there = self.by_node[card.node].values() if card.picked_by_node else [card]
        return all(each.places == mine.get(each.gpu, 0) for each in there)
