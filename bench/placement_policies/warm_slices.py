"""How often a slice is already partitioned, with and without preferring such places."""

from collections import Counter
from collections.abc import Sequence

from bench.placement_policies.fleets import Bucketed
from bench.placement_policies.online import serve
from bench.placement_policies.policies import OURS, ranks_for_demand
from bench.placement_policies.workloads import Arrival, Request
from broker.domain.placement.buckets.warm_buckets import WarmBuckets
from broker.domain.placement.buckets.warm_slots import WarmSlots
from broker.domain.placement.costs.state_ranks import StateRanks
from broker.domain.placement.warm_slices import PartitioningEffort

LOOKS = "bp warm"
LOADS = (0.9, 1.1)
HAD = {PartitioningEffort.REUSE: "warm", PartitioningEffort.CREATE: "free", PartitioningEffort.REPLACE: "anew"}


class Counting(Bucketed):
    """Count of how slices were obtained, without gangs.

    It does not choose by it.
    """

    def __init__(self, ranks: StateRanks, nodes: Sequence[int]) -> None:
        super().__init__(ranks, nodes)
        self.had: Counter[PartitioningEffort] = Counter()


class Looking(Counting):
    """Policy that takes the fastest of equally good places."""

    def __init__(self, ranks: StateRanks, nodes: Sequence[int]) -> None:
        super().__init__(ranks, nodes)
        self.buckets = self._warm = WarmBuckets(ranks, nodes)

    def place(self, number: int, request: Request) -> bool:
        placed = super().place(number, request)
        if placed and request.count == 1:
            self.had[self._warm.last_effort] += 1
        return placed


class Blind(Counting):
    """Policy that takes the GPU added last."""

    def __init__(self, ranks: StateRanks, nodes: Sequence[int]) -> None:
        super().__init__(ranks, nodes)
        self._warm_slots, self._left = WarmSlots(ranks), [0] * len(nodes)

    def place(self, number: int, request: Request) -> bool:
        if not super().place(number, request):
            return False
        profile, slots = self.held[number]
        for gpu, start in slots:
            left, keeps = self._left[gpu], self._warm_slots.surviving_bits[profile][start]
            how = PartitioningEffort.REPLACE if left & ~keeps else PartitioningEffort.CREATE
            if left & self._warm_slots.slot_bit[profile][start]:
                how = PartitioningEffort.REUSE
            self._left[gpu] = left & keeps
            if request.count == 1:
                self.had[how] += 1
        return True

    def release(self, number: int) -> None:
        profile, slots = self.held[number]
        for gpu, start in slots:
            self._left[gpu] |= self._warm_slots.slot_bit[profile][start]
        super().release(number)


def warmed(
    arrivals: list[Arrival], nodes: Sequence[int], demand: Sequence[float], seed: int
) -> dict[tuple[str, str], float]:
    """Return by rule the accepted GPU-time in percent, and how slices were obtained."""
    found, ranks = dict[tuple[str, str], float](), ranks_for_demand(demand, seed)
    fleets: dict[str, Counting] = {OURS: Blind(ranks, nodes), LOOKS: Looking(ranks, nodes)}
    for name, fleet in fleets.items():
        found[name, "time"] = 100 * serve(fleet, arrivals).gpu_time
        for how, figure in HAD.items():
            found[name, figure] = 100 * fleet.had[how] / fleet.had.total()
    return found
