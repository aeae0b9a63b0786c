"""Published rules that we compare with, as their authors describe them."""

from math import exp
from random import Random

from broker.domain.placement.shares.fragmentation import FragmentationMeasure
from broker.domain.placement.shares.node_capacity import WHOLE_MILLI, NodeCapacity, ShareRequest
from broker.domain.placement.shares.shared_nodes import ShareBid

TRIES = 50  # at random, before all nodes are looked at


def ways(node: NodeCapacity, request: ShareRequest) -> list[tuple[int, ...]]:
    """Return the GPU choices of a node for a request; equal free shares count once."""
    if not node.fits(request):
        return []
    if not request.is_partial:
        return [node.find_unused_gpus(request.gpus)]
    by_left = {left: (gpu,) for gpu, left in reversed([*enumerate(node.free_by_gpu)]) if left >= request.share}
    return [by_left[left] for left in sorted(by_left)]


class BestFit:
    """Fewest processors and GPUs left on the node, then the fullest GPU.

    Both count as shares of the largest node.
    """

    def bid(self, node: NodeCapacity, request: ShareRequest) -> ShareBid | None:
        if found := ways(node, request):
            cost = (node.cpu - request.cpu) / 128_000 + (node.free_milli - request.total_share) / 8 / WHOLE_MILLI
            return ShareBid(cost, found[0])
        return None


class Packing:
    """Fullest used GPU, else an empty one of a used node, else the smallest node.

    The smallest node is one with fewest GPUs. As published, in whole numbers up to 100, and a request
    without GPUs goes to the first node.
    """

    def bid(self, node: NodeCapacity, request: ShareRequest) -> ShareBid | None:
        found = ways(node, request)
        return ShareBid(-self._score(node, request, found[0]), found[0]) if found else None

    def _score(self, node: NodeCapacity, request: ShareRequest, gpus: tuple[int, ...]) -> int:
        if not request.gpus:
            return 0
        if node.unused_gpus == len(node.free_by_gpu):
            return max(100 // 3 - node.unused_gpus, node.unused_gpus)
        if opened := sum(node.free_by_gpu[gpu] == WHOLE_MILLI for gpu in gpus):
            return max(100 // 2 - opened, 100 // 3)
        return max(100 - sum(node.free_by_gpu[gpu] * 100 // WHOLE_MILLI for gpu in gpus) // 10, 100 // 2)


class Gradient:
    """FGD: the least increase of fragmentation."""

    def __init__(self, fragments: FragmentationMeasure) -> None:
        self._fragments = fragments

    def bid(self, node: NodeCapacity, request: ShareRequest) -> ShareBid | None:
        before = self._fragments.fragmentation_of(node)
        found = [ShareBid(self.cost(self._after(node, request, gpus) - before), gpus) for gpus in ways(node, request)]
        return min(found, default=None)

    def cost(self, more: float) -> float:
        return more

    def _after(self, node: NodeCapacity, request: ShareRequest, gpus: tuple[int, ...]) -> float:
        node.reserve(request, gpus)
        after = self._fragments.fragmentation_of(node)
        node.release(request, gpus)
        return after


class PublishedGradient(Gradient):
    """FGD as published: whole scores from 0 to 100, first of equal nodes.

    The rounding matters: it lets the order of the nodes decide wherever fragmentation hardly differs.
    """

    def cost(self, more: float) -> float:
        return -int(100 / (1 + exp(more / WHOLE_MILLI)))


class Anywhere:
    """Random node that fits, and a random GPU there.

    It has no cost, so it is drawn anew each time.
    """

    def __init__(self, seed: int) -> None:
        self._rng = Random(seed)

    def choose(self, capacities: list[NodeCapacity], request: ShareRequest) -> tuple[int, tuple[int, ...]] | None:
        """Return a node and its GPUs."""
        for _ in range(TRIES):
            node = self._rng.randrange(len(capacities))
            if capacities[node].fits(request):
                break
        else:
            fitting = [node for node, capacity in enumerate(capacities) if capacity.fits(request)]
            if not fitting:
                return None
            node = self._rng.choice(fitting)
        return node, self._rng.choice(ways(capacities[node], request))
