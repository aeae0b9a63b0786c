"""The rules that we measure ourselves against, as their authors describe them."""

from math import exp
from random import Random

from broker.domain.placement.fragments import Fragments
from broker.domain.placement.rooms import WHOLE, Request, Room
from broker.domain.placement.shared import Bid

TRIES = 50  # by chance, before all nodes are looked at


def ways(room: Room, request: Request) -> list[tuple[int, ...]]:
    """Return on which cards of a node a request may be held; cards with equal shares left count once."""
    if not room.fits(request):
        return []
    if not request.partial:
        return [room.wholes(request.cards)]
    by_left = {left: (card,) for card, left in reversed([*enumerate(room.left)]) if left >= request.share}
    return [by_left[left] for left in sorted(by_left)]


class BestFit:
    """Least processors and cards left on the node, each as a part of the largest node's; then the fullest card."""

    def bid(self, room: Room, request: Request) -> Bid | None:
        if found := ways(room, request):
            cost = (room.cpu - request.cpu) / 128_000 + (room.free - request.takes) / 8 / WHOLE
            return Bid(cost, found[0])
        return None


class Packing:
    """A card in use, the fullest; else an empty card of a node in use; else a node with fewest cards.

    As published, in whole numbers up to 100, and a request without cards goes to the first node.
    """

    def bid(self, room: Room, request: Request) -> Bid | None:
        found = ways(room, request)
        return Bid(-self._score(room, request, found[0]), found[0]) if found else None

    def _score(self, room: Room, request: Request, cards: tuple[int, ...]) -> int:
        if not request.cards:
            return 0
        if room.whole == len(room.left):
            return max(100 // 3 - room.whole, room.whole)
        if opened := sum(room.left[card] == WHOLE for card in cards):
            return max(100 // 2 - opened, 100 // 3)
        return max(100 - sum(room.left[card] * 100 // WHOLE for card in cards) // 10, 100 // 2)


class Gradient:
    """FGD: the least increase of fragmentation."""

    def __init__(self, fragments: Fragments) -> None:
        self._fragments = fragments

    def bid(self, room: Room, request: Request) -> Bid | None:
        before = self._fragments.of(room)
        found = [
            Bid(self.cost(self._after(room, request, cards) - before), cards) for cards in ways(room, request)
        ]
        return min(found, default=None)

    def cost(self, more: float) -> float:
        return more

    def _after(self, room: Room, request: Request, cards: tuple[int, ...]) -> float:
        room.take(request, cards)
        after = self._fragments.of(room)
        room.give(request, cards)
        return after


class PublishedGradient(Gradient):
    """FGD as published: scores are whole numbers from 0 to 100, and of equal nodes the first is taken.

    The rounding is no detail: it lets the order of the nodes decide wherever fragmentation hardly differs.
    """

    def cost(self, more: float) -> float:
        return -int(100 / (1 + exp(more / WHOLE)))


class Anywhere:
    """Any node that fits, by chance, and there any card: no cost at all, so it is asked anew each time."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)

    def choose(self, rooms: list[Room], request: Request) -> tuple[int, tuple[int, ...]] | None:
        """Return a node and the cards on it."""
        for _ in range(TRIES):
            node = self._chance.randrange(len(rooms))
            if rooms[node].fits(request):
                break
        else:
            fitting = [node for node, room in enumerate(rooms) if room.fits(request)]
            if not fitting:
                return None
            node = self._chance.choice(fitting)
        return node, self._chance.choice(ways(rooms[node], request))
