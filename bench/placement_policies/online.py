"""Simulation with arrivals and departures; requests that do not fit are dropped."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from bench.placement_policies.fleets import Fleet, Oracle
from bench.placement_policies.gpu_profiles import NAMES, WEIGHTS
from bench.placement_policies.workloads import Arrival

WARM_UP = 0.3  # of the time until the last arrival


@dataclass
class Served:
    """Results of the arrivals after the warm-up."""

    offered: list[float] = field(default_factory=lambda: [0.0] * len(NAMES))  # seconds of slices, by profile
    accepted: list[float] = field(default_factory=lambda: [0.0] * len(NAMES))
    gangs: int = 0
    gangs_accepted: int = 0
    leases: int = 0
    leases_accepted: int = 0
    active: float = 0.0  # GPUs in use at a time, on average
    fewest: float = 0.0  # the fewest that would have done, on average
    moves: int = 0  # in the whole run

    @property
    def gpu_time(self) -> float:
        return sum(map(float.__mul__, self.accepted, map(float, WEIGHTS))) / sum(
            map(float.__mul__, self.offered, map(float, WEIGHTS))
        )

    def share_of(self, profile: int) -> float:
        return self.accepted[profile] / self.offered[profile] if self.offered[profile] else 1.0

    @property
    def moves_per_thousand(self) -> float:
        return 1000 * self.moves / max(1, self.leases_accepted)


def serve(fleet: Fleet, arrivals: Sequence[Arrival], *, count_gpus: bool = False) -> Served:
    """Run the arrivals through a fleet; counting GPUs at every moment doubles the time."""
    served, ends = Served(), []
    least, since, end = Oracle(()), arrivals[-1].at * WARM_UP, arrivals[-1].at
    before, active, fewest = since, 0, 0

    def pass_to(now: float) -> None:
        nonlocal before
        if now > before:
            served.active += active * (now - before)
            served.fewest += fewest * (now - before)
            before = now

    for number, (at, request) in enumerate(arrivals):
        while ends and ends[0][0] <= at:
            then, gone = heappop(ends)
            fleet.release(gone)
            if count_gpus:
                pass_to(then)
                least.release(gone)
                active, fewest = fleet.active(), least.active()
        taken = fleet.place(number, request)
        if taken:
            heappush(ends, (at + request.lifetime, number))
        if count_gpus and taken:
            pass_to(at)
            least.hold(number, request)
            active, fewest = fleet.active(), least.active()
        if at < since:
            continue
        time = request.count * request.lifetime
        served.offered[request.profile] += time
        served.leases += 1
        served.gangs += request.count > 1
        if taken:
            served.accepted[request.profile] += time
            served.leases_accepted += 1
            served.gangs_accepted += request.count > 1
    pass_to(end)
    served.active /= end - since
    served.fewest /= end - since
    served.moves = fleet.moves
    return served
