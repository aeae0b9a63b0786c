"""How much of a demand a set of GPU layouts serves."""

from collections import Counter
from collections.abc import Iterable, Mapping

from broker.domain.geometry.profiles import WHOLE_GPU
from broker.domain.placement.costs import slice_prices
from broker.domain.repartition.gpu_layouts import GpuLayout, LayoutCatalogue

MILLI = 1000
ProfileSupply = tuple[int, ...]  # number of slices of each profile in demand


class ServedDemand:
    """The exact worth of the served demand.

    Each served slice counts its profile's share of memory, up to what is in demand. Demand is in
    thousandths, so one GPU is worth `gpu_worth` per thousandth, and gains can be stated in thousandths
    of GPUs.
    """

    def __init__(self, catalogue: LayoutCatalogue, demand: Mapping[str, int]) -> None:
        self.catalogue = catalogue
        sold = {profile.name: profile for profile in catalogue.profiles} | {WHOLE_GPU: catalogue.model.whole}
        listed = slice_prices.default_prices(tuple(sold.values()), catalogue.model.grid, catalogue.model.compute)
        price = dict(zip(sold, listed, strict=True))
        self.gpu_worth = price[WHOLE_GPU]
        self.names = tuple(sorted(name for name, milli in demand.items() if name in price and milli > 0))
        self.prices = tuple(price[name] for name in self.names)
        self.demand = tuple(demand[name] for name in self.names)
        self._rows: dict[GpuLayout, ProfileSupply] = {}
        self.cuts = self._useful(catalogue.cuts)

    def row(self, cut: GpuLayout) -> ProfileSupply:
        if cut not in self._rows:
            counts = dict(cut.counts)
            self._rows[cut] = tuple(counts.get(name, 0) for name in self.names)
        return self._rows[cut]

    def supply(self, cuts: Iterable[GpuLayout]) -> ProfileSupply:
        total = [0] * len(self.names)
        for cut, times in Counter(cuts).items():
            for at, count in enumerate(self.row(cut)):
                total[at] += count * times
        return tuple(total)

    def worth(self, supply: ProfileSupply) -> int:
        return sum(
            price * min(count * MILLI, milli)
            for count, price, milli in zip(supply, self.prices, self.demand, strict=True)
        )

    @property
    def max_worth(self) -> int:
        """The worth of the whole demand."""
        return sum(price * milli for price, milli in zip(self.prices, self.demand, strict=True))

    def swapped(self, supply: ProfileSupply, old: GpuLayout, new: GpuLayout) -> ProfileSupply:
        return tuple(s - o + n for s, o, n in zip(supply, self.row(old), self.row(new), strict=True))

    def gain(self, supply: ProfileSupply, old: GpuLayout, new: GpuLayout) -> int:
        return self.worth(self.swapped(supply, old, new)) - self.worth(supply)

    def _useful(self, cuts: Iterable[GpuLayout]) -> tuple[GpuLayout, ...]:
        """Return the layouts that no other layout dominates for this demand."""
        rows: dict[ProfileSupply, GpuLayout] = {}
        for cut in cuts:
            rows.setdefault(self.row(cut), cut)
        best = [row for row in rows if not any(_is_dominated(row, other) for other in rows)]
        return tuple(rows[row] for row in best if any(row))


def _is_dominated(row: ProfileSupply, other: ProfileSupply) -> bool:
    return row != other and all(a <= b for a, b in zip(row, other, strict=True))
