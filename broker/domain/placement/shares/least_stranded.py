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

    lost_value: float = 10.0  # per thousandth of a GPU that could have been sold, at its price
    stranded: float = 0.6  # per thousandth that lacks processors or memory
    fill_order: float = 2000.0  # for the last node in the fill order, against the first


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

    def __init__(self, frequencies: Mapping[ShareRequest, float], weights: StrandingWeights | None = None) -> None:
        """Take the frequency of each request, in any unit."""
        self._weights = weights or StrandingWeights()
        self._fragments = FragmentationMeasure(frequencies)
        shares = sum(request.total_share * frequency for request, frequency in frequencies.items())
        cpu = sum(request.cpu * frequency for request, frequency in frequencies.items())
        memory = sum(request.memory * frequency for request, frequency in frequencies.items())
        parts: dict[int, float] = {}
        for request, frequency in frequencies.items():
            if request.is_partial:
                parts[request.share] = parts.get(request.share, 0.0) + frequency
        self._worth = [
            self._weights.lost_value * WHOLE_MILLI * worth
            for worth in best_value_by_free({**share_prices(parts), WHOLE_MILLI: 1.0})
        ]
        # Thousandths of GPUs requested per milli-processor, and per MiB.
        self._share_per_cpu = shares / cpu if cpu else inf
        self._share_per_mib = shares / memory if memory else inf

    def bid(self, node: NodeCapacity, request: ShareRequest) -> ShareBid | None:
        """Return the best way to hold a request on a node, or None."""
        if not node.fits(request):
            return None
        weights, cpu = self._weights, node.cpu - request.cpu
        cost = weights.fill_order * node.fill_order - self._fragments.fragmentation_of(node)
        cost += weights.stranded * (
            self._stranded(node.free_milli - request.total_share, cpu, node.memory - request.memory)
            - self._stranded(node.free_milli, node.cpu, node.memory)
        )
        if not request.is_partial:
            gpus = node.find_unused_gpus(request.gpus)
            lost = self._fragments.loss_table(cpu, node.unused_gpus - request.gpus)
            cost += sum([lost[left] for left in node.free_by_gpu]) - request.gpus * lost[WHOLE_MILLI]
            return ShareBid(cost, gpus)
        return self._bid_for_part(node, request, cost)

    def _stranded(self, free: int, cpu: int, memory: int) -> float:
        """Return the free thousandths of GPUs beyond what an average demand could use."""
        # Add one to each, so that a lack of what nobody requests (0 times infinity) strands nothing.
        return max(0.0, free - min((cpu + 1) * self._share_per_cpu, (memory + 1) * self._share_per_mib))

    def _bid_for_part(self, node: NodeCapacity, request: ShareRequest, cost: float) -> ShareBid:
        cpu, share, worth = node.cpu - request.cpu, request.share, self._worth
        lost = self._fragments.loss_table(cpu, node.unused_gpus)
        all_lost = sum([lost[left] for left in node.free_by_gpu])
        best_free, min_cost = -1, float("inf")
        for left in {left for left in node.free_by_gpu if left >= share}:
            if left == WHOLE_MILLI:
                fewer = self._fragments.loss_table(cpu, node.unused_gpus - 1)
                change = (
                    sum([fewer[left] for left in node.free_by_gpu]) - fewer[WHOLE_MILLI] + fewer[WHOLE_MILLI - share]
                )
            else:
                change = all_lost - lost[left] + lost[left - share]
            change += worth[left] - worth[left - share]
            if change < min_cost:
                best_free, min_cost = left, change
        return ShareBid(cost + min_cost, (node.free_by_gpu.index(best_free),))
