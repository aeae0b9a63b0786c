"""How full the cards of the trace could be at best while nobody is refused: cutting stock, cards alone.

Pods come in the proportions of the trace, all of them are known in advance and may be cut apart and moved at will;
processors, memory and nodes do not matter. What an 810/1000 leaves on its card hardly anybody asks for, so it is not
100 %. A rule may pass it later, by whom it refuses.
"""

from collections import Counter
from collections.abc import Mapping

from broker.domain.placement.cutting import share_prices
from broker.domain.placement.rooms import WHOLE, Request


def ceiling(asked: Mapping[Request, int]) -> float:
    """Return the per cent of the fewest cards on which all that is asked for could lie."""
    shares, cards, takes = Counter[int](), 0.0, 0
    for request, times in asked.items():
        takes += request.takes * times
        if request.partial:
            shares[request.share] += times
        else:
            cards += request.cards * times
    cards += sum(price * shares[share] for share, price in share_prices(shares).items())
    return 100 * takes / WHOLE / cards
