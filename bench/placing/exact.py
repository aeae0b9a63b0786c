"""The closed form of the fewest cards against a search that knows nothing but what one card can hold."""

from collections.abc import Iterator
from itertools import product

from bench.placing.cards import TABLE, WHOLE
from bench.placing.covering import fillings
from broker.domain.placement.minimum import min_cards

# Up to so many 1g.10gb, 1g.20gb, 2g, 3g and 4g: all that these make is searched, no sample of it.
MOST = (16, 8, 7, 6, 5)
Counts = tuple[int, ...]


def differing() -> Iterator[tuple[Counts, int, int]]:
    """Yield slices for which the closed form names another number of cards than the search, with both numbers."""
    for counts, cards in searched().items():
        if (named := min_cards(TABLE, (*counts, 0))) != cards:
            yield counts, named, cards


def searched() -> dict[Counts, int]:
    """Return the fewest cards for all counts of slices up to the most: one card for any filling, and the rest."""
    ways = [way[:WHOLE] for way in fillings() if not way[WHOLE]]
    fewest: dict[Counts, int] = {(0,) * WHOLE: 0}
    # In this order whatever is left beside a filling, none of it below nought, has been met before.
    for counts in product(*(range(most + 1) for most in MOST)):
        if counts not in fewest:
            fewest[counts] = 1 + min(
                fewest[left]
                for way in ways
                if (left := tuple([max(0, n - held) for n, held in zip(counts, way, strict=True)])) != counts
            )
    return fewest
