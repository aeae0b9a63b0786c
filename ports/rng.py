"""Random numbers that a simulation can repeat from a seed."""

import random


class Rng:
    """Seeded random number generator; without a seed, for jitter in production."""

    def __init__(self, seed: int | str | None = None) -> None:
        self._random = random.Random(seed)

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def below(self, probability: float) -> bool:
        """Return True with this probability."""
        return self._random.random() < probability

    def lognormal(self, median: float, sigma: float) -> float:
        """Return a positive log-normal draw with this median.

        `sigma` is the standard deviation of its logarithm.
        """
        return median * self._random.lognormvariate(0.0, sigma)
