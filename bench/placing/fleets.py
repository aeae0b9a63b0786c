"""Fleets that take requests by a rule and give them back by number."""

from collections.abc import Sequence
from typing import Protocol

from bench.placing.cards import FULL, TABLE, WHOLE
from bench.placing.workloads import Request
from broker.domain.placement.buckets import Buckets
from broker.domain.placement.ranks import Ranks
from broker.domain.placement.tables import EMPTY


class Fleet(Protocol):
    """What the experiments ask of a policy."""

    moves: int

    def place(self, number: int, request: Request) -> bool:
        """Take a request, or leave everything as it was and say so."""
        ...

    def release(self, number: int) -> None: ...

    def active(self) -> int:
        """Return how many cards are not empty."""
        ...


class Bucketed:
    """Cards in buckets; what a rule ranks first is taken."""

    def __init__(self, ranks: Ranks, nodes: Sequence[int]) -> None:
        self.buckets, self.moves = Buckets(ranks, nodes), 0
        self.held: dict[int, tuple[int, list[tuple[int, int]]]] = {}

    def place(self, number: int, request: Request) -> bool:
        if request.count > 1:
            return self._place_gang(number, request.count)
        seat = self.buckets.place(request.profile)
        if seat is None:
            return False
        self.held[number] = request.profile, [seat]
        return True

    def _place_gang(self, number: int, count: int) -> bool:
        empty = self.buckets.empty
        node = empty.node_with(count)
        if node is None:
            return False
        cards = empty.on[node][-count:]
        for card in cards:
            self.buckets.become(card, FULL)
        self.held[number] = WHOLE, [(card, 0) for card in cards]
        return True

    def release(self, number: int) -> None:
        profile, seats = self.held.pop(number)
        for card, start in seats:
            self.buckets.release(card, profile, start)

    def active(self) -> int:
        return len(self.buckets.state) - len(self.buckets.cards[EMPTY])


class FirstFit:
    """The first card on which it fits; a rule says only where on that card."""

    def __init__(self, ranks: Ranks, nodes: Sequence[int]) -> None:
        self.ranks, self.node, self.moves = ranks, list(nodes), 0
        self.state = [EMPTY] * len(nodes)
        self.room = [(1 << len(nodes)) - 1] * len(ranks.order)  # by profile, a bit for every card it fits on
        self.on: list[list[int]] = [[] for _ in range(max(nodes) + 1)]
        for card, node in enumerate(nodes):
            self.on[node].append(card)
        self.held: dict[int, tuple[int, list[tuple[int, int]]]] = {}

    def place(self, number: int, request: Request) -> bool:
        if request.count > 1:
            return self._place_gang(number, request.count)
        room = self.room[request.profile]
        if not room:
            return False
        card = (room & -room).bit_length() - 1
        start, after = self.ranks.best[request.profile][self.state[card]]
        self._become(card, after)
        self.held[number] = request.profile, [(card, start)]
        return True

    def _place_gang(self, number: int, count: int) -> bool:
        for cards in self.on:
            empty = [card for card in cards if self.state[card] == EMPTY][:count]
            if len(empty) == count:
                for card in empty:
                    self._become(card, FULL)
                self.held[number] = WHOLE, [(card, 0) for card in empty]
                return True
        return False

    def release(self, number: int) -> None:
        profile, seats = self.held.pop(number)
        for card, start in seats:
            self._become(card, TABLE.without(self.state[card], profile, start))

    def _become(self, card: int, state: int) -> None:
        before, self.state[card] = self.state[card], state
        for profile, bits in enumerate(self.ranks.bit):
            if (not bits[before]) != (not bits[state]):
                self.room[profile] ^= 1 << card

    def active(self) -> int:
        return len(self.state) - self.room[WHOLE].bit_count()


class Oracle:
    """Accepts whatever would fit if all that runs could be packed anew at any moment; blind to nodes."""

    def __init__(self, nodes: Sequence[int]) -> None:
        self.cards, self.moves = len(nodes), 0
        self.live = [0] * len(TABLE.profiles)
        self.held: dict[int, Request] = {}

    def place(self, number: int, request: Request) -> bool:
        self.live[request.profile] += request.count
        if self.live[WHOLE] > self.cards or not could_fit(self.cards - self.live[WHOLE], *self.live[:WHOLE]):
            self.live[request.profile] -= request.count
            return False
        self.held[number] = request
        return True

    def release(self, number: int) -> None:
        request = self.held.pop(number)
        self.live[request.profile] -= request.count

    def active(self) -> int:
        return fewest_cards(self.live)


def could_fit(cards: int, n1: int, n120: int, n2: int, n3: int, n4: int) -> bool:
    """Tell whether so many slices of each profile fit on so many cards."""
    right = min(n3, cards)  # three slices waste nothing in the right half
    left = n4 + n3 - right
    if n4 > cards or left > cards:
        return False
    halves, rights = cards - left, cards - right
    ends = min(
        n120, rights
    )  # the pair at the end of a card has one compute slice: double memory goes there first
    pairs = 2 * halves + rights
    others = n2 + n120 - ends
    return others <= pairs and 2 * (pairs - others) + rights - ends >= n1


def fewest_cards(live: Sequence[int]) -> int:
    """Return the fewest cards that so many slices of each profile fit on."""
    n1, n120, n2, n3, n4, whole = live
    cards = max(n4, -(-(n3 + n4) // 2), (n1 + 2 * n120 + 2 * n2 + 4 * n3 + 4 * n4 - 1) // 8)
    while not could_fit(cards, n1, n120, n2, n3, n4):
        cards += 1
    return whole + cards
