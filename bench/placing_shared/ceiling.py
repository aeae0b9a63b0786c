"""How full the cards of the trace could be at best while nobody is refused: cutting stock, cards alone.

Pods come in the proportions of the trace, all of them are known in advance and may be cut apart and moved at will;
processors, memory and nodes do not matter. What a 810/1000 leaves on its card hardly anybody asks for, so it is not
100 %. Once requests are refused, a rule may pass it by whom it refuses; until then it cannot.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import mul

from broker.domain.placement.covering import marginal_cards
from broker.domain.placement.rooms import WHOLE, Request

STEP = 10  # thousandths: every share of the trace is a multiple
TINY = 1e-7


def ceiling(asked: Mapping[Request, int]) -> float:
    """Return the per cent of the fewest cards on which all that is asked for could lie."""
    shares, whole = Counter[int](), 0
    for request, times in asked.items():
        if request.partial:
            shares[request.share] += times
        else:
            whole += request.cards * times
    takes = sum(request.takes * times for request, times in asked.items())
    return 100 * takes / WHOLE / (whole + fewest_cards(shares))


def fewest_cards(shares: Mapping[int, int]) -> float:
    """Return the fewest cards that hold so many of every share, cut at will: column generation on the dual."""
    sizes = sorted(shares)
    demand = [shares[size] for size in sizes]
    fillings = [tuple(WHOLE // size * (size == other) for other in sizes) for size in sizes]
    while True:
        prices = marginal_cards(fillings, demand)
        filling = dearest(sizes, prices)
        if sum(map(mul, prices, filling)) <= 1 + TINY:
            return float(sum(map(mul, prices, demand)))
        fillings.append(filling)


def dearest(sizes: Sequence[int], prices: Sequence[float]) -> tuple[int, ...]:
    """Return how many of every size fill one card at the highest price in all."""
    best: list[tuple[float, tuple[int, ...]]] = [(0.0, (0,) * len(sizes))]
    for room in range(STEP, WHOLE + STEP, STEP):
        found = best[-1]
        for n, (size, price) in enumerate(zip(sizes, prices, strict=True)):
            if size <= room and best[(room - size) // STEP][0] + price > found[0] + TINY:
                worth, counts = best[(room - size) // STEP]
                found = worth + price, (*counts[:n], counts[n] + 1, *counts[n + 1 :])
        best.append(found)
    return best[-1][1]
