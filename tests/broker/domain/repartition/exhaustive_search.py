"""Exhaustive search for the demand that GPUs can serve."""

from functools import cache

from broker.domain.repartition.served_demand import ServedDemand


def exactly(filling: ServedDemand, gpus: int) -> int:
    rows, prices = [filling.slices_of_layout(cut) for cut in filling.useful_layouts], filling.prices

    @cache
    def best(left: int, wanted: tuple[int, ...]) -> int:
        if not left or not any(wanted):
            return 0
        found = 0
        for row in rows:
            got = [min(count * 1000, milli) for count, milli in zip(row, wanted, strict=True)]
            now = sum(price * milli for price, milli in zip(prices, got, strict=True))
            rest = tuple(milli - taken for milli, taken in zip(wanted, got, strict=True))
            found = max(found, now + best(left - 1, rest))
        return found

    return best(gpus, tuple(filling.demand))
