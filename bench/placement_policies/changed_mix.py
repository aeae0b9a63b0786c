"""Cost of a changed mix for prices that learn from requests, or never learn.

The mix flips half-way.
"""

from collections.abc import Callable, Sequence
from random import Random

from bench.placement_policies import workloads
from bench.placement_policies.capacity_bounds import gpus_for
from bench.placement_policies.fleets import Bucketed, Fleet
from bench.placement_policies.gpu_profiles import COUNTED, MODEL, NAMES, PROFILES
from bench.placement_policies.online import serve
from bench.placement_policies.policies import ranks_without_forecast
from bench.placement_policies.workloads import Arrival, Request
from broker.domain.placement.buckets.state_buckets import StateBuckets
from broker.domain.placement.costs import slice_prices
from broker.domain.placement.costs.bid_price_rule import bid_price_rule
from broker.domain.placement.costs.state_ranks import StateRanks, rank_states

HALF, LOAD, GPUS = 8_000, 1.1, workloads.spread({8: 32})
EVERY = 250  # requests between two looks at the prices
FADES = 0.998  # of what a request counts for with each one after it
DRAWS = 12
FLIPS = (
    ("skew_small6", "bimodal6"),
    ("bimodal6", "skew_small6"),
    ("openb C7", "uniform6"),
    ("uniform6", "openb C7"),
)
KNOWS, LEARNS, STALE, UNTOLD = "told of it", "learns", "told before", "never told"


class Repriced(Bucketed):
    """Fleet whose ranks are recomputed every so many requests."""

    def __init__(
        self, rank: Callable[[Sequence[float]], StateRanks], teller: Callable[[int, Request], Sequence[float]]
    ):
        self.rank, self.teller, self.known = rank, teller, list(teller(0, Request(0, 1, 1.0)))
        super().__init__(rank(self.known), GPUS)

    def place(self, number: int, request: Request) -> bool:
        found = self.teller(number, request)
        if number % EVERY == 0 and list(found) != self.known:
            self.known = list(found)
            self.buckets = StateBuckets(self.rank(self.known), GPUS, self.buckets.state_of)
        return super().place(number, request)


def drift(before: str, after: str, seed: int) -> dict[str, float]:
    """Return the accepted GPU-time of prices that know, that learn and that stay."""
    arrivals = flipping(before, after, seed)
    rng = Random(f"drift prices {seed}").random

    def rank(demand: Sequence[float]) -> StateRanks:
        prices = slice_prices.dual_prices(PROFILES, MODEL.grid, demand, rng=rng, samples=DRAWS, compute=MODEL.compute)
        return rank_states(COUNTED, bid_price_rule(COUNTED, prices, [each / sum(demand) for each in demand]))

    halves = [demand_of(before), demand_of(after)]
    tellers = {
        KNOWS: lambda number, _: halves[number >= HALF],
        LEARNS: Learner(halves[0]),
        STALE: lambda number, _: halves[0],
    }
    fleets: dict[str, Fleet] = {name: Repriced(rank, teller) for name, teller in tellers.items()}
    fleets[UNTOLD] = Bucketed(ranks_without_forecast(), GPUS)
    return {name: 100 * serve(fleet, arrivals).gpu_time for name, fleet in fleets.items()}


class Learner:
    """Forecast that starts with the mix and then follows requests, recent ones most."""

    def __init__(self, demand: Sequence[float]) -> None:
        self.seen = [each / sum(demand) / (1 - FADES) for each in demand]

    def __call__(self, number: int, request: Request) -> Sequence[float]:
        self.seen = [each * FADES for each in self.seen]
        self.seen[request.profile] += request.count
        return self.seen


def demand_of(mix: str) -> list[float]:
    """Return how often each profile is requested."""
    if mix in workloads.MADE:
        return [float(each) for each in workloads.MADE[mix]]
    return workloads.asked_for([each.request for each in workloads.openb(mix) if each.request.count == 1])


def flipping(before: str, after: str, seed: int) -> list[Arrival]:
    """Return requests of two mixes in sequence, with equal lifetimes.

    Only the mix changes.
    """
    rng, since, found = Random(f"drift {before} {after} {seed}"), 0.0, []
    for mix in (before, after):
        drawn = rng.choices(range(len(NAMES)), demand_of(mix), k=HALF)
        requests = [Request(profile, 1, rng.expovariate(1.0)) for profile in drawn]
        apart = gpus_for(workloads.work(requests, HALF)) / (LOAD * len(GPUS))
        found += workloads.timed(requests, apart, rng, since=since)
        since += apart * HALF
    return found
