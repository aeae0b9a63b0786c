"""How much of a demand a set of cuts serves, and the set that serves most of it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations_with_replacement

from broker.domain.cuts import CARD, Catalogue, Cut

MILLI = 1000
Supply = tuple[int, ...]  # how many of each profile in demand there are


class Filling:
    """The worth of what is served, exactly: each profile's share of memory, up to what is asked for.

    The worth of one card is `card_worth` for every thousandth asked, so gains can be told in thousandths of cards.
    """

    def __init__(self, catalogue: Catalogue, demand: Mapping[str, int]) -> None:
        model = catalogue.model
        # As placement prices them: memory, and a little for compute.
        price = {p.name: 1000 * model.compute * p.memory + model.grid * p.compute for p in catalogue.profiles}
        price[CARD] = self.card_worth = (1000 + 1) * model.compute * model.grid
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


def best_cuts(
    filling: Filling, now: Sequence[Cut], fixed: Iterable[Cut], *, least_gain: int = 1
) -> tuple[Cut, ...]:
    """Return cuts for the cards of `now` that serve most beside the fixed ones; what need not change stays.

    Two roads: mend what there is, one or two cards at a time, or fill empty cards one by one and mend that. The
    second changes more, so it is taken only where it wins more.
    """
    if not filling.cuts or not now:
        return tuple(now)
    beside = filling.supply(fixed)
    mended = _mend(filling, list(now), beside, least_gain)
    anew = _mend(filling, _fill(filling, len(now), beside), beside, 1)
    gained = _worth(filling, anew, beside) - _worth(filling, mended, beside)
    return tuple(anew if gained >= max(least_gain, 1) else mended)


def _worth(filling: Filling, cuts: Iterable[Cut], beside: Supply) -> int:
    return filling.worth(tuple(a + b for a, b in zip(filling.supply(cuts), beside, strict=True)))


def _fill(filling: Filling, cards: int, beside: Supply) -> list[Cut]:
    chosen: list[Cut] = []
    supply, nothing = beside, Cut()
    for _ in range(cards):
        best = max(filling.cuts, key=lambda cut: filling.gain(supply, nothing, cut))
        supply = filling.swapped(supply, nothing, best)
        chosen.append(best)
    return chosen


def _mend(filling: Filling, cuts: list[Cut], beside: Supply, least: int) -> list[Cut]:
    """Change one card, or two at once, as long as each change wins enough."""
    supply = tuple(a + b for a, b in zip(filling.supply(cuts), beside, strict=True))
    have = Counter(cuts)
    while True:
        move = _best_move(filling, have, supply, 1, least) or _best_move(filling, have, supply, 2, 2 * least)
        if move is None:
            return sorted(have.elements())
        for old, new in zip(*move, strict=True):
            have[old] -= 1
            have[new] += 1
            supply = filling.swapped(supply, old, new)
        have = +have


def _best_move(
    filling: Filling, have: Counter[Cut], supply: Supply, cards: int, least: int
) -> tuple[tuple[Cut, ...], tuple[Cut, ...]] | None:
    before, best, found = filling.worth(supply), max(least, 1) - 1, None
    for old in combinations_with_replacement(sorted(have), cards):
        if any(have[cut] < count for cut, count in Counter(old).items()):
            continue
        without = supply
        for cut in old:
            without = filling.swapped(without, cut, Cut())
        for new in combinations_with_replacement(filling.cuts, cards):
            after = without
            for cut in new:
                after = filling.swapped(after, Cut(), cut)
            gain = filling.worth(after) - before
            if gain > best:
                best, found = gain, (old, new)
    return found
