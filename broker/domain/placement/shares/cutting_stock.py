"""Shadow prices of GPU shares for placement: duals of a cutting-stock problem.

A share is worth what it takes where GPUs are divided as well as possible.
"""

from collections.abc import Mapping, Sequence
from math import gcd
from operator import mul

from broker.domain.placement.costs.covering_lp import marginal_gpus
from broker.domain.placement.shares.node_capacity import WHOLE_MILLI

PRICE_TOLERANCE = 1e-7


def share_prices(frequencies: Mapping[int, float]) -> dict[int, float]:
    """Return, by share in thousandths, how many GPUs one more takes.

    That is more than the share where nobody requests the rest: next to 810 of 1000 hardly anything
    fits, so it is a whole GPU; 470 and 530 are half a GPU each. Found by column generation: ways to
    divide a GPU are added for as long as one is worth more than the GPU.
    """
    shares = sorted(frequencies)
    demand = [frequencies[share] for share in shares]
    divisions = [tuple(WHOLE_MILLI // share * (share == other) for other in shares) for share in shares]
    while True:
        prices = marginal_gpus(divisions, demand)
        division = _most_valuable_division(shares, prices)
        if sum(map(mul, prices, division)) <= 1 + PRICE_TOLERANCE:
            return dict(zip(shares, prices, strict=True))
        divisions.append(division)


def best_value_by_free(prices: Mapping[int, float]) -> list[float]:
    """Return, by free thousandths of a GPU, the best value of its shares."""
    value = [0.0] * (WHOLE_MILLI + 1)
    for left in range(1, WHOLE_MILLI + 1):
        fill = [value[left - share] + price for share, price in prices.items() if share <= left]
        value[left] = max(value[left - 1], *fill, 0.0)
    return value


def _most_valuable_division(shares: Sequence[int], prices: Sequence[float]) -> tuple[int, ...]:
    """Return the most valuable division of one GPU, as counts by share."""
    step = gcd(WHOLE_MILLI, *shares)
    best: list[tuple[float, tuple[int, ...]]] = [(0.0, (0,) * len(shares))]
    for room in range(step, WHOLE_MILLI + step, step):
        found = best[-1]
        for n, (share, price) in enumerate(zip(shares, prices, strict=True)):
            if share <= room and best[(room - share) // step][0] + price > found[0] + PRICE_TOLERANCE:
                value, counts = best[(room - share) // step]
                found = value + price, (*counts[:n], counts[n] + 1, *counts[n + 1 :])
        best.append(found)
    return best[-1][1]
