"""The most that cards can serve, by trying every cut on each of them: what the planner is measured against."""

from functools import cache

from broker.domain.filling import Filling


def exactly(filling: Filling, cards: int) -> int:
    rows, prices = [filling.row(cut) for cut in filling.cuts], filling.prices

    @cache
    def best(left: int, asked: tuple[int, ...]) -> int:
        if not left or not any(asked):
            return 0
        found = 0
        for row in rows:
            got = [min(count * 1000, milli) for count, milli in zip(row, asked, strict=True)]
            now = sum(price * milli for price, milli in zip(prices, got, strict=True))
            rest = tuple(milli - taken for milli, taken in zip(asked, got, strict=True))
            found = max(found, now + best(left - 1, rest))
        return found

    return best(cards, tuple(filling.asked))
