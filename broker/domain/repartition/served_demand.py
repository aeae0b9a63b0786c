"""Value of the profile demand that a set of GPU layouts can serve."""

from collections import Counter
from collections.abc import Iterable, Mapping

from broker.domain.geometry.profiles import WHOLE_GPU
from broker.domain.placement.costs import slice_prices
from broker.domain.repartition.gpu_layouts import GpuLayout, LayoutCatalogue

MILLI = 1000
ProfileSupply = tuple[int, ...]  # number of slices of each profile in demand


class ServedDemand:
    """Value of the slice demand that a set of GPU layouts can serve.

    Each served slice counts the price of its profile, a share of the GPU's memory, up to the demand. Demand is in
    thousandths, so one GPU has the value `gpu_value` per thousandth, and gains can be stated in thousandths
    of GPUs. Every supply is a number of slices for each of `names`.
    """

    def __init__(self, catalogue: LayoutCatalogue, demand: Mapping[str, int]) -> None:
        self.catalogue = catalogue
        sold = {profile.name: profile for profile in catalogue.profiles} | {WHOLE_GPU: catalogue.model.whole}
        listed = slice_prices.default_prices(tuple(sold.values()), catalogue.model.grid, catalogue.model.compute)
        price = dict(zip(sold, listed, strict=True))
        self.gpu_value = price[WHOLE_GPU]
        self.names = tuple(sorted(name for name, milli in demand.items() if name in price and milli > 0))
        self.prices = tuple(price[name] for name in self.names)
        self.demand = tuple(demand[name] for name in self.names)
        self._rows: dict[GpuLayout, ProfileSupply] = {}
        self.useful_layouts = self._useful(catalogue.layouts)

    def slices_of_layout(self, layout: GpuLayout) -> ProfileSupply:
        """Return the number of slices of each profile in demand that a layout has."""
        if layout not in self._rows:
            counts = dict(layout.counts)
            self._rows[layout] = tuple(counts.get(name, 0) for name in self.names)
        return self._rows[layout]

    def total_slices(self, layouts: Iterable[GpuLayout]) -> ProfileSupply:
        """Return the number of slices of each profile in demand that all layouts have."""
        total = [0] * len(self.names)
        for layout, times in Counter(layouts).items():
            for at, count in enumerate(self.slices_of_layout(layout)):
                total[at] += count * times
        return tuple(total)

    def served_value(self, supply: ProfileSupply) -> int:
        """Return the value of the demand that these slices serve."""
        return sum(
            price * min(count * MILLI, milli)
            for count, price, milli in zip(supply, self.prices, self.demand, strict=True)
        )

    @property
    def demand_value(self) -> int:
        """The value of the whole demand."""
        return sum(price * milli for price, milli in zip(self.prices, self.demand, strict=True))

    def slices_after_change(self, supply: ProfileSupply, old: GpuLayout, new: GpuLayout) -> ProfileSupply:
        """Return the slices after one GPU changed its layout."""
        return tuple(
            s - o + n for s, o, n in zip(supply, self.slices_of_layout(old), self.slices_of_layout(new), strict=True)
        )

    def value_gain(self, supply: ProfileSupply, old: GpuLayout, new: GpuLayout) -> int:
        """Return how much more value is served after one GPU changed its layout."""
        return self.served_value(self.slices_after_change(supply, old, new)) - self.served_value(supply)

    def _useful(self, layouts: Iterable[GpuLayout]) -> tuple[GpuLayout, ...]:
        """Return the layouts that no other layout dominates for this demand."""
        rows: dict[ProfileSupply, GpuLayout] = {}
        for layout in layouts:
            rows.setdefault(self.slices_of_layout(layout), layout)
        best = [row for row in rows if not any(_is_dominated(row, other) for other in rows)]
        return tuple(rows[row] for row in best if any(row))


def _is_dominated(row: ProfileSupply, other: ProfileSupply) -> bool:
    return row != other and all(a <= b for a, b in zip(row, other, strict=True))
