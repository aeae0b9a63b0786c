"""Where part of a card is given to a request: at the price of best cuts, no card stranded, old holes first."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from broker.domain.placement.cutting import most_worth, share_prices
from broker.domain.placement.fragments import Fragments
from broker.domain.placement.rooms import WHOLE, Request, Room
from broker.domain.placement.shared import Bid


@dataclass(frozen=True, slots=True)
class Weights:
    """What weighs how much, in thousandths of a card."""

    cut: float = 10.0  # a thousandth of what could have been cut from the card, at its price
    stranded: float = 0.6  # a thousandth that lacks processors or memory
    order: float = 2000.0  # the last node in the order of filling, against the first


class LeastStranded:
    """The gradient of FGD, and what it does not see in time.

    FGD counts a card as lost once hardly a request fits there any more. Long before, others have taken the
    processors or the memory that it needs to be sold: so many thousandths of a node's cards are stranded as
    find none when each takes as many as requests take with a card on average. And wherever fragments hardly
    differ, nodes are filled in one order that never changes, all makes of them evenly: old holes see every
    request that comes, and are filled best.

    Part of a card is taken where least is lost of what could still be cut from the card at the prices of the
    best cuts: 470 of 1000 next to 470, not where 320 and 650 would have filled a card together.
    """

    def __init__(self, popular: Mapping[Request, float], weights: Weights | None = None) -> None:
        """Take how often what is asked for, in any unit."""
        self._weights = weights or Weights()
        self._fragments = Fragments(popular)
        takes = sum(request.takes * times for request, times in popular.items())
        cpu = sum(request.cpu * times for request, times in popular.items())
        memory = sum(request.memory * times for request, times in popular.items())
        parts: dict[int, float] = {}
        for request, times in popular.items():
            if request.partial:
                parts[request.share] = parts.get(request.share, 0.0) + times
        self._worth = [
            self._weights.cut * WHOLE * worth for worth in most_worth({**share_prices(parts), WHOLE: 1.0})
        ]
        # Thousandths of cards that are asked for with one of a processor, and with one MiB.
        self._a_cpu = takes / cpu if cpu else inf
        self._a_mib = takes / memory if memory else inf

    def bid(self, room: Room, request: Request) -> Bid | None:
        """Return the best way to hold a request on a node, or None where it does not fit."""
        if not room.fits(request):
            return None
        weights, cpu = self._weights, room.cpu - request.cpu
        cost = weights.order * room.rank - self._fragments.of(room)
        cost += weights.stranded * (
            self._stranded(room.free - request.takes, cpu, room.memory - request.memory)
            - self._stranded(room.free, room.cpu, room.memory)
        )
        if not request.partial:
            cards = room.wholes(request.cards)
            lost = self._fragments.lost(cpu, room.whole - request.cards)
            cost += sum([lost[left] for left in room.left]) - request.cards * lost[WHOLE]
            return Bid(cost, cards)
        return self._bid_for_part(room, request, cost)

    def _stranded(self, free: int, cpu: int, memory: int) -> float:
        """Return how many thousandths of cards are free beyond those that an average demand could use."""
        # One more of each, so that the lack of what nobody asks for (nought times infinity) strands nothing.
        return max(0.0, free - min((cpu + 1) * self._a_cpu, (memory + 1) * self._a_mib))

    def _bid_for_part(self, room: Room, request: Request, cost: float) -> Bid:
        cpu, share, worth = room.cpu - request.cpu, request.share, self._worth
        lost = self._fragments.lost(cpu, room.whole)
        all_lost = sum([lost[left] for left in room.left])
        best, least = -1, float("inf")
        for left in {left for left in room.left if left >= share}:
            if left == WHOLE:
                fewer = self._fragments.lost(cpu, room.whole - 1)
                more = sum([fewer[left] for left in room.left]) - fewer[WHOLE] + fewer[WHOLE - share]
            else:
                more = all_lost - lost[left] + lost[left - share]
            more += worth[left] - worth[left - share]
            if more < least:
                best, least = left, more
        return Bid(cost + least, (room.left.index(best),))


def evenly(makes: Mapping[int, object]) -> dict[int, float]:
    """Return by node its rank from 0 to 1 in the order of filling, in which all makes of nodes are spread evenly."""
    alike: dict[object, list[int]] = {}
    for node, make in makes.items():
        alike.setdefault(make, []).append(node)
    return {node: (at + 0.5) / len(nodes) for nodes in alike.values() for at, node in enumerate(nodes)}
