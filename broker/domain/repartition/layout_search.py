"""Search GPU layouts that serve most of a demand with few changes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement

from broker.domain.repartition.demand_cover import cover_demand
from broker.domain.repartition.gpu_layouts import GpuLayout
from broker.domain.repartition.served_demand import ProfileSupply, ServedDemand


def best_gpu_layouts(
    demand: ServedDemand, current: Sequence[GpuLayout], fixed: Iterable[GpuLayout], *, min_gain: int = 1
) -> tuple[GpuLayout, ...]:
    """Return the layouts for the `current` GPUs that serve most demand.

    The fixed GPUs' supply is counted, and what need not change stays. Improving one or two GPUs at a
    time changes least. Starting from scratch changes more, so that is done only where it gains more; it
    serves a demand whole wherever the GPUs could.
    """
    if not demand.useful_layouts or not current:
        return tuple(current)
    fixed_supply = demand.total_slices(fixed)
    repaired = _improve_layouts(demand, list(current), fixed_supply, min_gain)
    new = _layouts_from_scratch(demand, current, fixed_supply)
    gained = _served_value(demand, new, fixed_supply) - _served_value(demand, repaired, fixed_supply)
    return tuple(new if gained >= max(min_gain, 1) else repaired)


def _layouts_from_scratch(
    demand: ServedDemand, current: Sequence[GpuLayout], fixed_supply: ProfileSupply
) -> list[GpuLayout]:
    """Return layouts that cover the demand whole, or the best improved start.

    Where no layouts cover it, two starting points are improved and the better result is taken.
    """
    cover = cover_demand(demand, current, fixed_supply)
    if cover is not None and _served_value(demand, cover, fixed_supply) == demand.demand_value:
        return cover
    begun = [layouts for layouts in (cover, _fill_greedily(demand, len(current), fixed_supply)) if layouts is not None]
    ways = [_improve_layouts(demand, layouts, fixed_supply, 1) for layouts in begun]
    return max(ways, key=lambda layouts: _served_value(demand, layouts, fixed_supply))


def _served_value(demand: ServedDemand, layouts: Iterable[GpuLayout], fixed_supply: ProfileSupply) -> int:
    return demand.served_value(tuple(a + b for a, b in zip(demand.total_slices(layouts), fixed_supply, strict=True)))


def _fill_greedily(demand: ServedDemand, gpus: int, fixed_supply: ProfileSupply) -> list[GpuLayout]:
    chosen: list[GpuLayout] = []
    supply, nothing = fixed_supply, GpuLayout()
    for _ in range(gpus):
        best = max(demand.useful_layouts, key=lambda layout: demand.value_gain(supply, nothing, layout))
        supply = demand.slices_after_change(supply, nothing, best)
        chosen.append(best)
    return chosen


def _improve_layouts(
    demand: ServedDemand, layouts: list[GpuLayout], fixed_supply: ProfileSupply, min_gain: int
) -> list[GpuLayout]:
    """Change one GPU, or two at once, as long as each change gains enough."""
    supply = tuple(a + b for a, b in zip(demand.total_slices(layouts), fixed_supply, strict=True))
    have = Counter(layouts)
    while True:
        move = _best_change(demand, have, supply, 1, min_gain) or _best_change(demand, have, supply, 2, 2 * min_gain)
        if move is None:
            return sorted(have.elements())
        for old, new in zip(*move, strict=True):
            have[old] -= 1
            have[new] += 1
            supply = demand.slices_after_change(supply, old, new)
        have = +have


def _best_change(
    demand: ServedDemand, have: Counter[GpuLayout], supply: ProfileSupply, gpus: int, min_gain: int
) -> tuple[tuple[GpuLayout, ...], tuple[GpuLayout, ...]] | None:
    before, best, found = demand.served_value(supply), max(min_gain, 1) - 1, None
    for old in combinations_with_replacement(sorted(have), gpus):
        if any(have[layout] < count for layout, count in Counter(old).items()):
            continue
        without = supply
        for layout in old:
            without = demand.slices_after_change(without, layout, GpuLayout())
        for new in combinations_with_replacement(demand.useful_layouts, gpus):
            after = without
            for layout in new:
                after = demand.slices_after_change(after, GpuLayout(), layout)
            gain = demand.served_value(after) - before
            if gain > best:
                best, found = gain, (old, new)
    return found
