"""How much of a demand a set of cuts serves."""

from collections import Counter
from collections.abc import Iterable, Mapping

from broker.domain.cuts import CARD, Catalogue, Cut
from broker.domain.placement import prices

MILLI = 1000
Supply = tuple[int, ...]  # how many of each profile in demand there are


class Filling:
    """The worth of what is served, exactly: each profile's share of memory, up to what is asked for.

    The worth of one card is `card_worth` for every thousandth asked, so gains can be told in thousandths of cards.
    """

    def __init__(self, catalogue: Catalogue, demand: Mapping[str, int]) -> None:
        self.catalogue = catalogue
        sold = {profile.name: profile for profile in catalogue.profiles} | {CARD: catalogue.model.whole}
        listed = prices.default(tuple(sold.values()), catalogue.model.grid, catalogue.model.compute)
        price = dict(zip(sold, listed, strict=True))
        self.card_worth = price[CARD]
        self.names = tuple(sorted(name for name, milli in demand.items() if name in price and milli > 0))
        self.prices = tuple(price[name] for name in self.names)
        self.asked = tuple(demand[name] for name in self.names)
        self._rows: dict[Cut, Supply] = {}
        self.cuts = self._useful(catalogue.cuts)

    def row(self, cut: Cut) -> Supply:
        if cut not in self._rows:
            counts = dict(cut.counts)
            self._rows[cut] = tuple(counts.get(name, 0) for name in self.names)
        return self._rows[cut]

    def supply(self, cuts: Iterable[Cut]) -> Supply:
        total = [0] * len(self.names)
        for cut, times in Counter(cuts).items():
            for at, count in enumerate(self.row(cut)):
                total[at] += count * times
        return tuple(total)

    def worth(self, supply: Supply) -> int:
        return sum(
            price * min(count * MILLI, milli)
            for count, price, milli in zip(supply, self.prices, self.asked, strict=True)
        )

    @property
    def most(self) -> int:
        """The worth of all that is asked for."""
        return sum(price * milli for price, milli in zip(self.prices, self.asked, strict=True))

    def swapped(self, supply: Supply, old: Cut, new: Cut) -> Supply:
        return tuple(s - o + n for s, o, n in zip(supply, self.row(old), self.row(new), strict=True))

    def gain(self, supply: Supply, old: Cut, new: Cut) -> int:
        return self.worth(self.swapped(supply, old, new)) - self.worth(supply)

    def _useful(self, cuts: Iterable[Cut]) -> tuple[Cut, ...]:
        """Leave out cuts that another one betters in everything that is asked for."""
        rows: dict[Supply, Cut] = {}
        for cut in cuts:
            rows.setdefault(self.row(cut), cut)
        best = [row for row in rows if not any(_below(row, other) for other in rows)]
        return tuple(rows[row] for row in best if any(row))


def _below(row: Supply, other: Supply) -> bool:
    return row != other and all(a <= b for a, b in zip(row, other, strict=True))
