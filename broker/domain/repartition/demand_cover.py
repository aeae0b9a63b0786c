"""Choose GPU layouts that serve a whole demand, where the GPUs suffice.

It relies on the exact count of the fewest GPUs that hold given slices.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from broker.domain.geometry.profiles import WHOLE_GPU, Profile
from broker.domain.placement.costs import slice_prices
from broker.domain.placement.costs.minimum_gpus import min_gpus
from broker.domain.placement.costs.state_tables import StateTable, build_state_table
from broker.domain.repartition.gpu_layouts import GpuLayout
from broker.domain.repartition.served_demand import MILLI, ProfileSupply, ServedDemand


def cover_demand(
    demand: ServedDemand, current: Sequence[GpuLayout], fixed_supply: ProfileSupply
) -> list[GpuLayout] | None:
    """Return layouts that, with the fixed supply, serve the whole demand.

    As many of the `current` layouts as possible stay. If the GPUs are too few, the most valuable slices are served
    first.
    None where no closed form is known for the profiles in demand, or where these GPUs cannot be
    partitioned as that form assumes.
    """
    try:
        cover = _DemandCover(demand, len(current), fixed_supply)
    except ValueError:
        return None
    chosen: list[GpuLayout] = []
    for layout, times in cover.candidate_layouts(Counter(current)):
        chosen += [layout] * cover.assign(layout, times)
    return chosen if len(chosen) == len(current) else None


class _DemandCover:
    """The demand still to be served and the GPUs left; it always fits."""

    def __init__(self, demand: ServedDemand, gpus: int, fixed_supply: ProfileSupply) -> None:
        self._demand, self._left = demand, gpus
        model = demand.catalogue.model
        known = {profile.name: profile for profile in demand.catalogue.profiles} | {WHOLE_GPU: model.whole}
        self._table = _cached_table(tuple(known[name] for name in demand.names), model.grid)
        missing = [max(milli - MILLI * there, 0) for milli, there in zip(demand.demand, fixed_supply, strict=True)]
        self._rest = [0] * len(missing)
        dearest_first = sorted(range(len(missing)), key=lambda at: -demand.prices[at])
        for at in dearest_first:
            self._rest[at] = self._most(at, missing[at] // MILLI)
        # A demand for half a slice is worth half: it comes after all whole slices.
        for at in sorted(dearest_first, key=lambda at: -demand.prices[at] * (missing[at] % MILLI)):
            if missing[at] % MILLI and self._rest[at] == missing[at] // MILLI:
                self._rest[at] = self._most(at, self._rest[at] + 1)

    def candidate_layouts(self, current: Counter[GpuLayout]) -> Iterator[tuple[GpuLayout, int]]:
        """Yield candidate layouts in order, with the most GPUs each may take.

        Existing layouts come first, then all others. One pass is enough. What fits, fits in full
        layouts; and a layout of which no more could be added at its turn can never be added later, when
        both less is in demand and fewer GPUs are left.
        """
        model = self._demand.catalogue.model
        value: dict[GpuLayout, float] = {}
        price = slice_prices.dual_prices(self._table.profiles, model.grid, self._rest, compute=model.compute)
        for layout in {*current, *self._demand.useful_layouts}:
            served = zip(price, self._demand.slices_of_layout(layout), self._rest, strict=True)
            value[layout] = sum(each * min(count, wanted) for each, count, wanted in served)
        for layout in sorted(current, key=lambda layout: (-value[layout], layout)):
            yield layout, current[layout]
        for layout in sorted(self._demand.useful_layouts, key=lambda layout: (-value[layout], layout)):
            yield layout, self._left

    def assign(self, layout: GpuLayout, most: int) -> int:
        """Assign a layout to as many GPUs as possible; return how many.

        The rest of the demand must still fit on the other GPUs.
        """
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._fits(self._without(layout, middle), middle) else (low, middle - 1)
        self._rest, self._left = self._without(layout, low), self._left - low
        return low

    def _without(self, layout: GpuLayout, times: int) -> list[int]:
        row = self._demand.slices_of_layout(layout)
        return [max(wanted - count * times, 0) for wanted, count in zip(self._rest, row, strict=True)]

    def _most(self, at: int, wanted: int) -> int:
        """Return how many of a profile, up to `wanted`, still fit."""
        low, high = self._rest[at], wanted
        while low < high:
            middle = (low + high + 1) // 2
            tried = [*self._rest[:at], middle, *self._rest[at + 1 :]]
            low, high = (middle, high) if self._fits(tried, 0) else (low, middle - 1)
        return low

    def _fits(self, counts: Sequence[int], fewer: int) -> bool:
        return min_gpus(self._table, counts) <= self._left - fewer


@lru_cache(maxsize=256)
def _cached_table(profiles: tuple[Profile, ...], grid: int) -> StateTable:
    return build_state_table(profiles, grid)
