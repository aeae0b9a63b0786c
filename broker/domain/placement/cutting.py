"""What parts of a card are worth when cards are cut into them as well as can be: the prices of cutting stock."""

from collections.abc import Mapping, Sequence
from math import gcd
from operator import mul

from broker.domain.placement.covering import marginal_cards
from broker.domain.placement.rooms import WHOLE

TINY = 1e-7


def share_prices(popular: Mapping[int, float]) -> dict[int, float]:
    """Return by share, in thousandths, how many cards one more of it takes where all are cut at best.

    That is more than the share where nobody asks for the rest: next to 810 of 1000 hardly anything fits, so
    it is a whole card; 470 and 530 are half a card each. Found by column generation: ways to cut a card are
    added for as long as one is worth more than the card.
    """
    shares = sorted(popular)
    demand = [popular[share] for share in shares]
    cuts = [tuple(WHOLE // share * (share == other) for other in shares) for share in shares]
    while True:
        prices = marginal_cards(cuts, demand)
        cut = _dearest(shares, prices)
        if sum(map(mul, prices, cut)) <= 1 + TINY:
            return dict(zip(shares, prices, strict=True))
        cuts.append(cut)


def most_worth(prices: Mapping[int, float]) -> list[float]:
    """Return by what is left on a card, in thousandths, the highest price of what could be cut from it."""
    worth = [0.0] * (WHOLE + 1)
    for left in range(1, WHOLE + 1):
        fill = [worth[left - share] + price for share, price in prices.items() if share <= left]
        worth[left] = max(worth[left - 1], *fill, 0.0)
    return worth


def _dearest(shares: Sequence[int], prices: Sequence[float]) -> tuple[int, ...]:
    """Return how many of every share make the dearest cut of one card."""
    step = gcd(WHOLE, *shares)
    best: list[tuple[float, tuple[int, ...]]] = [(0.0, (0,) * len(shares))]
    for room in range(step, WHOLE + step, step):
        found = best[-1]
        for n, (share, price) in enumerate(zip(shares, prices, strict=True)):
            if share <= room and best[(room - share) // step][0] + price > found[0] + TINY:
                worth, counts = best[(room - share) // step]
                found = worth + price, (*counts[:n], counts[n] + 1, *counts[n + 1 :])
        best.append(found)
    return best[-1][1]
