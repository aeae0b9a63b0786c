"""Search GPU layouts that serve most of a demand with few changes."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement

from broker.domain.repartition.demand_cover import cover_demand
from broker.domain.repartition.gpu_layouts import GpuLayout
from broker.domain.repartition.served_demand import ProfileSupply, ServedDemand


def best_gpu_layouts(
    filling: ServedDemand, now: Sequence[GpuLayout], fixed: Iterable[GpuLayout], *, least_gain: int = 1
) -> tuple[GpuLayout, ...]:
    """Return the layouts for the GPUs of `now` that serve most demand.

    The fixed GPUs' supply is counted, and what need not change stays. Improving one or two GPUs at a
    time changes least. Starting from scratch changes more, so that is done only where it gains more; it
    serves a demand whole wherever the GPUs could.
    """
    if not filling.cuts or not now:
        return tuple(now)
    beside = filling.supply(fixed)
    repaired = _improve_layouts(filling, list(now), beside, least_gain)
    anew = _layouts_from_scratch(filling, now, beside)
    gained = _served_worth(filling, anew, beside) - _served_worth(filling, repaired, beside)
    return tuple(anew if gained >= max(least_gain, 1) else repaired)


def _layouts_from_scratch(filling: ServedDemand, now: Sequence[GpuLayout], beside: ProfileSupply) -> list[GpuLayout]:
    """Return layouts that cover the demand whole, or the best improved start.

    Where no layouts cover it, two starting points are improved and the better result is taken.
    """
    cover = cover_demand(filling, now, beside)
    if cover is not None and _served_worth(filling, cover, beside) == filling.max_worth:
        return cover
    begun = [cuts for cuts in (cover, _fill_greedily(filling, len(now), beside)) if cuts is not None]
    ways = [_improve_layouts(filling, cuts, beside, 1) for cuts in begun]
    return max(ways, key=lambda cuts: _served_worth(filling, cuts, beside))


def _served_worth(filling: ServedDemand, cuts: Iterable[GpuLayout], beside: ProfileSupply) -> int:
    return filling.worth(tuple(a + b for a, b in zip(filling.supply(cuts), beside, strict=True)))


def _fill_greedily(filling: ServedDemand, gpus: int, beside: ProfileSupply) -> list[GpuLayout]:
    chosen: list[GpuLayout] = []
    supply, nothing = beside, GpuLayout()
    for _ in range(gpus):
        best = max(filling.cuts, key=lambda cut: filling.gain(supply, nothing, cut))
        supply = filling.swapped(supply, nothing, best)
        chosen.append(best)
    return chosen


def _improve_layouts(
    filling: ServedDemand, cuts: list[GpuLayout], beside: ProfileSupply, least: int
) -> list[GpuLayout]:
    """Change one GPU, or two at once, as long as each change gains enough."""
    supply = tuple(a + b for a, b in zip(filling.supply(cuts), beside, strict=True))
    have = Counter(cuts)
    while True:
        move = _best_change(filling, have, supply, 1, least) or _best_change(filling, have, supply, 2, 2 * least)
        if move is None:
            return sorted(have.elements())
        for old, new in zip(*move, strict=True):
            have[old] -= 1
            have[new] += 1
            supply = filling.swapped(supply, old, new)
        have = +have


def _best_change(
    filling: ServedDemand, have: Counter[GpuLayout], supply: ProfileSupply, gpus: int, least: int
) -> tuple[tuple[GpuLayout, ...], tuple[GpuLayout, ...]] | None:
    before, best, found = filling.worth(supply), max(least, 1) - 1, None
    for old in combinations_with_replacement(sorted(have), gpus):
        if any(have[cut] < count for cut, count in Counter(old).items()):
            continue
        without = supply
        for cut in old:
            without = filling.swapped(without, cut, GpuLayout())
        for new in combinations_with_replacement(filling.cuts, gpus):
            after = without
            for cut in new:
                after = filling.swapped(after, GpuLayout(), cut)
            gain = filling.worth(after) - before
            if gain > best:
                best, found = gain, (old, new)
    return found
