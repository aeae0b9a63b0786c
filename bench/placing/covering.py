"""Bounds in which cards and slices are divisible: the fewest cards for a demand, the most of it on given cards."""

from collections.abc import Sequence
from functools import cache

from bench.placing.cards import NAMES, TABLE, WEIGHTS
from bench.placing.programs import maximum
from broker.domain.placement.covering import Counts, fullest_cuts, marginal_cards


@cache
def fillings() -> tuple[Counts, ...]:
    """Return every way to fill a card to which nothing can be added: how many of each profile."""
    return fullest_cuts(TABLE)


def cards_for(demand: Sequence[float]) -> float:
    """Return how many cards cover a demand by profile."""
    prices = marginal_cards(fillings(), demand)
    return sum(price * each for price, each in zip(prices, demand, strict=True))


def most_served(demand: Sequence[float], cards: float) -> float:
    """Return the most compute slices of the demand that so many cards could serve."""
    ways, kinds = fillings(), range(len(NAMES))
    worth = [0.0] * len(ways) + [float(each) for each in WEIGHTS]
    served = [[-float(way[p]) for way in ways] + [float(p == q) for q in kinds] for p in kinds]
    within = [[0.0] * len(ways) + [float(p == q) for q in kinds] for p in kinds]
    used = [[1.0] * len(ways) + [0.0] * len(NAMES)]
    most = [0.0] * len(NAMES) + [each / cards for each in demand] + [1.0]
    return maximum(worth, served + within + used, most) * cards
