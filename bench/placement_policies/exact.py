"""Check of the closed form of the fewest GPUs against an exhaustive search.

The search knows only what one GPU can hold.
"""

from collections.abc import Iterator
from itertools import product

from bench.placement_policies.capacity_bounds import fillings
from bench.placement_policies.gpu_profiles import TABLE, WHOLE
from broker.domain.placement.costs.minimum_gpus import min_gpus

# Up to so many 1g.10gb, 1g.20gb, 2g, 3g and 4g: all that these make is searched, no sample of it.
MOST = (16, 8, 7, 6, 5)
Counts = tuple[int, ...]


def differing() -> Iterator[tuple[Counts, int, int]]:
    """Yield slices for which closed form and search differ, with both numbers."""
    for counts, gpus in searched().items():
        if (named := min_gpus(TABLE, (*counts, 0))) != gpus:
            yield counts, named, gpus


def searched() -> dict[Counts, int]:
    """Return the fewest GPUs for all counts of slices: one filled GPU plus the rest."""
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
