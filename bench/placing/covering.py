"""How few cards would do if slices were a liquid, and what one more slice of each profile would cost then."""

from collections.abc import Sequence
from functools import cache
from random import Random

from bench.placing.cards import NAMES, TABLE, WEIGHTS
from bench.placing.programs import maximum

DRAWS = 40


@cache
def fillings() -> tuple[tuple[int, ...], ...]:
    """Return every way to fill a card to which nothing can be added: how many of each profile."""
    reached, new = {(0, (0,) * len(NAMES))}, [(0, (0,) * len(NAMES))]
    while new:
        state, held = new.pop()
        for profile in range(len(NAMES)):
            more = (*held[:profile], held[profile] + 1, *held[profile + 1 :])
            for move in TABLE.moves[profile][state]:
                if (move.after, more) not in reached:
                    reached.add((move.after, more))
                    new.append((move.after, more))
    held_by = {held for _, held in reached}
    return tuple(
        sorted(
            a
            for a in held_by
            if not any(a != b and all(x <= y for x, y in zip(a, b, strict=True)) for b in held_by)
        )
    )


def duals(demand: Sequence[float]) -> tuple[float, list[float]]:
    """Return how many cards cover the demand, and what one more of each profile adds to that."""
    rows = fillings()
    scale = sum(demand) or 1.0
    value, prices, _ = maximum([each / scale for each in demand], rows, [1.0] * len(rows))
    return value * scale, prices


def cards_for(demand: Sequence[float]) -> float:
    return duals(demand)[0]


def averaged_duals(demand: Sequence[float], seed: int) -> list[float]:
    """Return the prices averaged over demands somewhat off this one, for the exact one's are often not unique."""
    chance = Random(f"duals {seed}")
    drawn = [duals([each * chance.uniform(0.7, 1.3) for each in demand])[1] for _ in range(DRAWS)]
    return [sum(prices) / DRAWS for prices in zip(*drawn, strict=True)]


def fluid(demand: Sequence[float], cards: float) -> float:
    """Return the most compute slices of the demand that so many cards could serve if slices were a liquid."""
    ways, kinds = fillings(), len(NAMES)
    worth = [0.0] * len(ways) + [float(each) for each in WEIGHTS]
    served = [[-float(way[p]) for way in ways] + [float(p == q) for q in range(kinds)] for p in range(kinds)]
    within = [[0.0] * len(ways) + [float(p == q) for q in range(kinds)] for p in range(kinds)]
    used = [[1.0] * len(ways) + [0.0] * kinds]
    most = [0.0] * kinds + [each / cards for each in demand] + [1.0]
    return maximum(worth, served + within + used, most)[0] * cards
