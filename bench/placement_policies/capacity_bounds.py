"""Bounds with divisible GPUs and slices: fewest GPUs for a demand, most demand served."""

from collections.abc import Sequence
from functools import cache

from bench.placement_policies.gpu_profiles import NAMES, TABLE, WEIGHTS
from bench.placement_policies.programs import maximum
from broker.domain.placement.costs.covering_lp import ProfileCounts, marginal_gpus, maximal_layouts


@cache
def fillings() -> tuple[ProfileCounts, ...]:
    """Return every maximal filling of a GPU, as a number of slices per profile."""
    return maximal_layouts(TABLE)


def gpus_for(demand: Sequence[float]) -> float:
    """Return how many GPUs cover a demand by profile."""
    prices = marginal_gpus(fillings(), demand)
    return sum(price * each for price, each in zip(prices, demand, strict=True))


def most_served(demand: Sequence[float], gpus: float) -> float:
    """Return the most compute slices of the demand that so many GPUs could serve."""
    ways, kinds = fillings(), range(len(NAMES))
    worth = [0.0] * len(ways) + [float(each) for each in WEIGHTS]
    served = [[-float(way[p]) for way in ways] + [float(p == q) for q in kinds] for p in kinds]
    within = [[0.0] * len(ways) + [float(p == q) for q in kinds] for p in kinds]
    used = [[1.0] * len(ways) + [0.0] * len(NAMES)]
    most = [0.0] * len(NAMES) + [each / gpus for each in demand] + [1.0]
    return maximum(worth, served + within + used, most) * gpus
