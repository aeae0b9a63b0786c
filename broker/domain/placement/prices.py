"""What a slice of each profile is worth to the fleet; never what a tenant pays for it."""

from collections.abc import Callable, Sequence

from broker.domain.placement.covering import fullest_cuts, marginal_cards
from broker.domain.placement.tables import table_of
from broker.domain.profiles import Profile

# A card's memory is worth this for each of its compute slices and units, a compute slice one in a thousand of it.
SCALE = 1000
DRAWS, SPREAD = 40, 0.3


def default(profiles: Sequence[Profile], grid: int, compute: int | None = None) -> tuple[int, ...]:
    """Return each profile's share of the memory, exactly; compute breaks ties.

    On mixes of small slices that is the optimum of the covering problem, and it needs neither forecast nor solver.
    """
    slices = _compute(profiles, compute)
    return tuple(SCALE * slices * profile.memory + grid * profile.compute for profile in profiles)


def duals(
    profiles: Sequence[Profile],
    grid: int,
    demand: Sequence[float],
    *,
    chance: Callable[[], float] | None = None,
    draws: int = DRAWS,
    compute: int | None = None,
) -> tuple[float, ...]:
    """Return what one slice more of each profile takes of the fleet, in the scale of `default`, for a forecast.

    `demand` is how many of each are asked for; what nobody asks for is worth no more than its compute. At a
    demand there are often many answers: with `chance`, numbers from nought to one, the mean over that many
    demands nearby is taken. Raises ValueError for a demand that is negative or not one number a profile.
    """
    if len(demand) != len(profiles) or min(demand, default=0) < 0:
        raise ValueError(
            f"a demand has a number from nought up for each of {len(profiles)} profiles: {demand}"
        )
    asked = [n for n, amount in enumerate(demand) if amount > 0]
    cuts = fullest_cuts(table_of([profiles[n] for n in asked], grid))
    total = [0.0] * len(asked)
    for _ in range(times := draws if chance else 1):
        by = [1 + SPREAD * (2 * chance() - 1) if chance else 1.0 for _ in asked]
        drawn = [demand[n] * factor for n, factor in zip(asked, by, strict=True)]
        total = [a + b for a, b in zip(total, marginal_cards(cuts, drawn), strict=True)]
    cards = dict(zip(asked, (each / times for each in total), strict=True))
    whole = SCALE * _compute(profiles, compute) * grid
    return tuple(whole * cards.get(n, 0.0) + grid * profile.compute for n, profile in enumerate(profiles))


def _compute(profiles: Sequence[Profile], compute: int | None) -> int:
    return compute or max((profile.compute for profile in profiles), default=0) or 1
