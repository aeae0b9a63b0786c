"""The cuts that serve most of a demand on the cards there are, with few of them changed."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations_with_replacement

from broker.domain.covers import covering
from broker.domain.cuts import Cut
from broker.domain.filling import Filling, Supply


def best_cuts(
    filling: Filling, now: Sequence[Cut], fixed: Iterable[Cut], *, least_gain: int = 1
) -> tuple[Cut, ...]:
    """Return cuts for the cards of `now` that serve most beside the fixed ones; what need not change stays.

    Mending what there is, one or two cards at a time, changes least. Cutting anew changes more, so that is done
    only where it wins more; it serves a demand whole wherever the cards could.
    """
    if not filling.cuts or not now:
        return tuple(now)
    beside = filling.supply(fixed)
    mended = _mend(filling, list(now), beside, least_gain)
    anew = _anew(filling, now, beside)
    gained = _worth(filling, anew, beside) - _worth(filling, mended, beside)
    return tuple(anew if gained >= max(least_gain, 1) else mended)


def _anew(filling: Filling, now: Sequence[Cut], beside: Supply) -> list[Cut]:
    """Return what covers the demand whole, or where no cuts do, the best that mending makes of two beginnings."""
    cover = covering(filling, now, beside)
    if cover is not None and _worth(filling, cover, beside) == filling.most:
        return cover
    begun = [cuts for cuts in (cover, _fill(filling, len(now), beside)) if cuts is not None]
    ways = [_mend(filling, cuts, beside, 1) for cuts in begun]
    return max(ways, key=lambda cuts: _worth(filling, cuts, beside))


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
