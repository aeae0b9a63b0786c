"""What a slice of each profile is worth to the fleet; not a tenant's price."""

from collections.abc import Callable, Sequence

from broker.domain.geometry.profiles import Profile
from broker.domain.placement.costs.covering_lp import marginal_gpus, maximal_layouts
from broker.domain.placement.costs.state_tables import build_state_table

# Weight of memory against compute: memory decides, compute breaks ties.
MEMORY_WEIGHT = 1000
DEMAND_SAMPLES, DEMAND_SPREAD = 40, 0.3


def default_prices(profiles: Sequence[Profile], grid: int, compute: int | None = None) -> tuple[int, ...]:
    """Return each profile's share of the memory, exactly; compute breaks ties.

    On mixes of small slices that is the optimum of the covering problem, and it needs neither forecast
    nor solver.
    """
    slices = _compute_slices(profiles, compute)
    return tuple(MEMORY_WEIGHT * slices * profile.memory + grid * profile.compute for profile in profiles)


def dual_prices(
    profiles: Sequence[Profile],
    grid: int,
    demand: Sequence[float],
    *,
    rng: Callable[[], float] | None = None,
    samples: int = DEMAND_SAMPLES,
    compute: int | None = None,
) -> tuple[float, ...]:
    """Return the marginal worth of each profile for a forecast demand.

    It is what one more slice takes of the fleet, in the scale of `default_prices`. `demand` is the number of
    each profile; an unwanted profile is worth no more than its compute. A demand often has many
    solutions: with `rng`, a generator of random numbers from 0 to 1, the mean over `samples` nearby
    demands is taken. Raises ValueError for a demand that is negative or not one number a profile.
    """
    if len(demand) != len(profiles) or min(demand, default=0) < 0:
        raise ValueError(f"a demand has a number of at least 0 for each of {len(profiles)} profiles: {demand}")
    wanted = [n for n, amount in enumerate(demand) if amount > 0]
    layouts = maximal_layouts(build_state_table([profiles[n] for n in wanted], grid))
    total = [0.0] * len(wanted)
    for _ in range(times := samples if rng else 1):
        by = [1 + DEMAND_SPREAD * (2 * rng() - 1) if rng else 1.0 for _ in wanted]
        drawn = [demand[n] * factor for n, factor in zip(wanted, by, strict=True)]
        total = [a + b for a, b in zip(total, marginal_gpus(layouts, drawn), strict=True)]
    gpus = dict(zip(wanted, (each / times for each in total), strict=True))
    whole = MEMORY_WEIGHT * _compute_slices(profiles, compute) * grid
    return tuple(whole * gpus.get(n, 0.0) + grid * profile.compute for n, profile in enumerate(profiles))


def _compute_slices(profiles: Sequence[Profile], compute: int | None) -> int:
    return compute or max((profile.compute for profile in profiles), default=0) or 1
