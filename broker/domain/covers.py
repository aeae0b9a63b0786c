"""Cuts for a number of cards that serve a demand whole wherever any cuts could, by the count of the fewest cards."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from broker.domain.cuts import CARD, Cut
from broker.domain.filling import MILLI, Filling, Supply
from broker.domain.placement import prices
from broker.domain.placement.minimum import min_cards
from broker.domain.placement.tables import Table, table_of
from broker.domain.profiles import Profile


def covering(filling: Filling, now: Sequence[Cut], beside: Supply) -> list[Cut] | None:
    """Return cuts that serve all that is asked for beside what there is, of `now` as many as can stay.

    Where the cards are too few for all of it, what is worth most is served first. None where no closed form is
    known for what is asked for, or where these cards cannot be cut as that form takes for granted.
    """
    try:
        cover = _Cover(filling, len(now), beside)
    except ValueError:
        return None
    chosen: list[Cut] = []
    for cut, times in cover.offers(Counter(now)):
        chosen += [cut] * cover.take(cut, times)
    return chosen if len(chosen) == len(now) else None


class _Cover:
    """What is still to be served, and on how many cards: it always fits there."""

    def __init__(self, filling: Filling, cards: int, beside: Supply) -> None:
        self._filling, self._left = filling, cards
        model = filling.catalogue.model
        known = {profile.name: profile for profile in filling.catalogue.profiles} | {CARD: model.whole}
        self._table = _table(tuple(known[name] for name in filling.names), model.grid)
        missing = [max(milli - MILLI * there, 0) for milli, there in zip(filling.asked, beside, strict=True)]
        self._rest = [0] * len(missing)
        dearest_first = sorted(range(len(missing)), key=lambda at: -filling.prices[at])
        for at in dearest_first:
            self._rest[at] = self._most(at, missing[at] // MILLI)
        # What is asked for by half is worth a half: it comes after all that is worth itself.
        for at in sorted(dearest_first, key=lambda at: -filling.prices[at] * (missing[at] % MILLI)):
            if missing[at] % MILLI and self._rest[at] == missing[at] // MILLI:
                self._rest[at] = self._most(at, self._rest[at] + 1)

    def offers(self, now: Counter[Cut]) -> Iterator[tuple[Cut, int]]:
        """Name the cuts in the order to take them, with how many at most: those that are there, then all others.

        Going through all of them once is enough. What fits, fits in fullest cuts; and a cut of which no more could
        be taken at its turn can never be taken later, when both less is asked for and fewer cards are left.
        """
        model = self._filling.catalogue.model
        worth: dict[Cut, float] = {}
        price = prices.duals(self._table.profiles, model.grid, self._rest, compute=model.compute)
        for cut in {*now, *self._filling.cuts}:
            served = zip(price, self._filling.row(cut), self._rest, strict=True)
            worth[cut] = sum(each * min(count, asked) for each, count, asked in served)
        for cut in sorted(now, key=lambda cut: (-worth[cut], cut)):
            yield cut, now[cut]
        for cut in sorted(self._filling.cuts, key=lambda cut: (-worth[cut], cut)):
            yield cut, self._left

    def take(self, cut: Cut, most: int) -> int:
        """Cut as many cards so as leave room for the rest on the others, and return how many these are."""
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (
                (middle, high) if self._fits(self._without(cut, middle), middle) else (low, middle - 1)
            )
        self._rest, self._left = self._without(cut, low), self._left - low
        return low

    def _without(self, cut: Cut, times: int) -> list[int]:
        row = self._filling.row(cut)
        return [max(asked - count * times, 0) for asked, count in zip(self._rest, row, strict=True)]

    def _most(self, at: int, asked: int) -> int:
        """Return how many of a profile, so many at most, fit beside what is chosen already."""
        low, high = self._rest[at], asked
        while low < high:
            middle = (low + high + 1) // 2
            tried = [*self._rest[:at], middle, *self._rest[at + 1 :]]
            low, high = (middle, high) if self._fits(tried, 0) else (low, middle - 1)
        return low

    def _fits(self, counts: Sequence[int], fewer: int) -> bool:
        return min_cards(self._table, counts) <= self._left - fewer


@lru_cache(maxsize=256)
def _table(profiles: tuple[Profile, ...], grid: int) -> Table:
    return table_of(profiles, grid)
