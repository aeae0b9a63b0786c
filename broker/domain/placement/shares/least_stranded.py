"""Rule for shares: price of best divisions, no stranded GPUs, old gaps first."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from broker.domain.placement.shares.cutting_stock import best_value_by_free, share_prices
from broker.domain.placement.shares.fragmentation import FragmentationMeasure
from broker.domain.placement.shares.node_capacity import WHOLE_MILLI, NodeCapacity, ShareRequest
from broker.domain.placement.shares.shared_nodes import ShareBid


@dataclass(frozen=True, slots=True)
class StrandingWeights:
    """Weights of the cost terms, in thousandths of a GPU."""

    cut: float = 10.0  # per thousandth of a GPU that could have been sold, at its price
    stranded: float = 0.6  # per thousandth that lacks processors or memory
    order: float = 2000.0  # for the last node in the fill order, against the first


class LeastStranded:
    """The FGD gradient, extended by stranding that FGD sees too late.

    FGD counts a GPU as lost once hardly a request fits there any more. Long before, others have taken
    the processors or the memory that it needs to be sold: the thousandths of a node's GPUs are stranded
    that find none when each takes as much as requests take with a GPU on average. Wherever
    fragmentation hardly differs, nodes are filled in one constant order, all node classes evenly: old
    gaps see every new request, and are filled best.

    Part of a GPU is taken where least is lost of what could still be sold from the GPU at the prices of
    the best divisions: 470 of 1000 next to 470, not where 320 and 650 would have filled a GPU together.
    """

    def __init__(self, popular: Mapping[ShareRequest, float], weights: StrandingWeights | None = None) -> None:
        """Take the frequency of each request, in any unit."""
        self._weights = weights or StrandingWeights()
        self._fragments = FragmentationMeasure(popular)
        takes = sum(request.takes * times for request, times in popular.items())
        cpu = sum(request.cpu * times for request, times in popular.items())
        memory = sum(request.memory * times for request, times in popular.items())
        parts: dict[int, float] = {}
        for request, times in popular.items():
            if request.partial:
                parts[request.share] = parts.get(request.share, 0.0) + times
        self._worth = [
            self._weights.cut * WHOLE_MILLI * worth
            for worth in best_value_by_free({**share_prices(parts), WHOLE_MILLI: 1.0})
        ]
        # Thousandths of GPUs requested per milli-processor, and per MiB.
        self._a_cpu = takes / cpu if cpu else inf
        self._a_mib = takes / memory if memory else inf

    def bid(self, room: NodeCapacity, request: ShareRequest) -> ShareBid | None:
        """Return the best way to hold a request on a node, or None."""
        if not room.fits(request):
            return None
        weights, cpu = self._weights, room.cpu - request.cpu
        cost = weights.order * room.rank - self._fragments.of(room)
        cost += weights.stranded * (
            self._stranded(room.free - request.takes, cpu, room.memory - request.memory)
            - self._stranded(room.free, room.cpu, room.memory)
        )
        if not request.partial:
            gpus = room.wholes(request.gpus)
            lost = self._fragments.lost(cpu, room.whole - request.gpus)
            cost += sum([lost[left] for left in room.left]) - request.gpus * lost[WHOLE_MILLI]
            return ShareBid(cost, gpus)
        return self._bid_for_part(room, request, cost)

    def _stranded(self, free: int, cpu: int, memory: int) -> float:
        """Return the free thousandths of GPUs beyond what an average demand could use."""
        # Add one to each, so that a lack of what nobody requests (0 times infinity) strands nothing.
        return max(0.0, free - min((cpu + 1) * self._a_cpu, (memory + 1) * self._a_mib))

    def _bid_for_part(self, room: NodeCapacity, request: ShareRequest, cost: float) -> ShareBid:
        cpu, share, worth = room.cpu - request.cpu, request.share, self._worth
        lost = self._fragments.lost(cpu, room.whole)
        all_lost = sum([lost[left] for left in room.left])
        best, least = -1, float("inf")
        for left in {left for left in room.left if left >= share}:
            if left == WHOLE_MILLI:
                fewer = self._fragments.lost(cpu, room.whole - 1)
                more = sum([fewer[left] for left in room.left]) - fewer[WHOLE_MILLI] + fewer[WHOLE_MILLI - share]
            else:
                more = all_lost - lost[left] + lost[left - share]
            more += worth[left] - worth[left - share]
            if more < least:
                best, least = left, more
        return ShareBid(cost + least, (room.left.index(best),))
