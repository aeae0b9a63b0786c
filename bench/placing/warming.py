"""How often a slice is had where it is still cut: when that is looked for among equals, and when it is left to luck."""

from collections import Counter
from collections.abc import Sequence

from bench.placing.fleets import Bucketed
from bench.placing.online import serve
from bench.placing.policies import OURS, told
from bench.placing.workloads import Arrival, Request
from broker.domain.placement.ranks import Ranks
from broker.domain.placement.warm_buckets import WarmBuckets
from broker.domain.placement.warm_seats import Seats
from broker.domain.placement.warmth import Cutting

LOOKS = "bp warm"
LOADS = (0.9, 1.1)
HAD = {Cutting.WARM: "warm", Cutting.FREE: "free", Cutting.ANEW: "anew"}


class Counting(Bucketed):
    """Counts how slices were had; gangs are not counted, nor choosy."""

    def __init__(self, ranks: Ranks, nodes: Sequence[int]) -> None:
        super().__init__(ranks, nodes)
        self.had: Counter[Cutting] = Counter()


class Looking(Counting):
    """Of places that cost the same takes the one that is had most quickly."""

    def __init__(self, ranks: Ranks, nodes: Sequence[int]) -> None:
        super().__init__(ranks, nodes)
        self.buckets = self._warm = WarmBuckets(ranks, nodes)

    def place(self, number: int, request: Request) -> bool:
        placed = super().place(number, request)
        if placed and request.count == 1:
            self.had[self._warm.cutting] += 1
        return placed


class Blind(Counting):
    """Takes the last card in."""

    def __init__(self, ranks: Ranks, nodes: Sequence[int]) -> None:
        super().__init__(ranks, nodes)
        self._seats, self._left = Seats(ranks), [0] * len(nodes)

    def place(self, number: int, request: Request) -> bool:
        if not super().place(number, request):
            return False
        profile, seats = self.held[number]
        for card, start in seats:
            left, keeps = self._left[card], self._seats.keeps[profile][start]
            how = Cutting.ANEW if left & ~keeps else Cutting.FREE
            if left & self._seats.bit[profile][start]:
                how = Cutting.WARM
            self._left[card] = left & keeps
            if request.count == 1:
                self.had[how] += 1
        return True

    def release(self, number: int) -> None:
        profile, seats = self.held[number]
        for card, start in seats:
            self._left[card] |= self._seats.bit[profile][start]
        super().release(number)


def warmed(
    arrivals: list[Arrival], nodes: Sequence[int], demand: Sequence[float], seed: int
) -> dict[tuple[str, str], float]:
    """Return by rule the percent of GPU-time accepted, and of the slices that were had in each way."""
    found, ranks = dict[tuple[str, str], float](), told(demand, seed)
    fleets: dict[str, Counting] = {OURS: Blind(ranks, nodes), LOOKS: Looking(ranks, nodes)}
    for name, fleet in fleets.items():
        found[name, "time"] = 100 * serve(fleet, arrivals).gpu_time
        for how, figure in HAD.items():
            found[name, figure] = 100 * fleet.had[how] / fleet.had.total()
    return found
