"""Randomness, so that a simulation can be repeated from its seed."""

import random


class Chance:
    """A seeded stream of chance; the unseeded one is for production jitter."""

    def __init__(self, seed: int | str | None = None) -> None:
        self._random = random.Random(seed)

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def below(self, probability: float) -> bool:
        """Return True with this probability."""
        return self._random.random() < probability

    def lognormal(self, median: float, sigma: float) -> float:
        """Return a positive draw with this median; sigma is the spread of its logarithm."""
        return median * self._random.lognormvariate(0.0, sigma)
