"""The planner's rule before it counted the fewest cards: what it is held to be never worse than."""

from collections.abc import Sequence

from broker.domain import best_cuts as ways
from broker.domain.cuts import Cut
from broker.domain.filling import Filling


def card_by_card(filling: Filling, now: Sequence[Cut]) -> Sequence[Cut]:
    """Mend what there is, or fill cards one by one and mend that, whichever serves more."""
    nothing = filling.supply([])
    mended = ways._mend(filling, list(now), nothing, 1)
    filled = ways._mend(filling, ways._fill(filling, len(now), nothing), nothing, 1)
    return max(mended, filled, key=lambda cuts: filling.worth(filling.supply(cuts)))
