"""Cover a demand whole with GPU layouts, where the GPUs suffice.

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


def cover_demand(filling: ServedDemand, now: Sequence[GpuLayout], beside: ProfileSupply) -> list[GpuLayout] | None:
    """Return layouts that serve the whole demand beside the existing supply.

    As many of `now` as possible stay. Where the GPUs are too few, what is worth most is served first.
    None where no closed form is known for the profiles in demand, or where these GPUs cannot be
    partitioned as that form assumes.
    """
    try:
        cover = _DemandCover(filling, len(now), beside)
    except ValueError:
        return None
    chosen: list[GpuLayout] = []
    for cut, times in cover.offers(Counter(now)):
        chosen += [cut] * cover.take(cut, times)
    return chosen if len(chosen) == len(now) else None


class _DemandCover:
    """The demand still to be served and the GPUs left; it always fits."""

    def __init__(self, filling: ServedDemand, gpus: int, beside: ProfileSupply) -> None:
        self._filling, self._left = filling, gpus
        model = filling.catalogue.model
        known = {profile.name: profile for profile in filling.catalogue.profiles} | {WHOLE_GPU: model.whole}
        self._table = _cached_table(tuple(known[name] for name in filling.names), model.grid)
        missing = [max(milli - MILLI * there, 0) for milli, there in zip(filling.demand, beside, strict=True)]
        self._rest = [0] * len(missing)
        dearest_first = sorted(range(len(missing)), key=lambda at: -filling.prices[at])
        for at in dearest_first:
            self._rest[at] = self._most(at, missing[at] // MILLI)
        # A demand for half a slice is worth half: it comes after all whole slices.
        for at in sorted(dearest_first, key=lambda at: -filling.prices[at] * (missing[at] % MILLI)):
            if missing[at] % MILLI and self._rest[at] == missing[at] // MILLI:
                self._rest[at] = self._most(at, self._rest[at] + 1)

    def offers(self, now: Counter[GpuLayout]) -> Iterator[tuple[GpuLayout, int]]:
        """Yield candidate layouts in order, with the most GPUs each may take.

        Existing layouts come first, then all others. One pass is enough. What fits, fits in full
        layouts; and a layout of which no more could be added at its turn can never be added later, when
        both less is in demand and fewer GPUs are left.
        """
        model = self._filling.catalogue.model
        worth: dict[GpuLayout, float] = {}
        price = slice_prices.dual_prices(self._table.profiles, model.grid, self._rest, compute=model.compute)
        for cut in {*now, *self._filling.cuts}:
            served = zip(price, self._filling.row(cut), self._rest, strict=True)
            worth[cut] = sum(each * min(count, wanted) for each, count, wanted in served)
        for cut in sorted(now, key=lambda cut: (-worth[cut], cut)):
            yield cut, now[cut]
        for cut in sorted(self._filling.cuts, key=lambda cut: (-worth[cut], cut)):
            yield cut, self._left

    def take(self, cut: GpuLayout, most: int) -> int:
        """Assign a layout to as many GPUs as possible; return how many.

        The rest of the demand must still fit on the other GPUs.
        """
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._fits(self._without(cut, middle), middle) else (low, middle - 1)
        self._rest, self._left = self._without(cut, low), self._left - low
        return low

    def _without(self, cut: GpuLayout, times: int) -> list[int]:
        row = self._filling.row(cut)
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
