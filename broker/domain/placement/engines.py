"""By which rule cards are chosen: ours, or one of the two that came before it and are replayed beside it."""

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache

from broker.domain.placement.ranks import Ranks, Rule, ranked
from broker.domain.placement.rules import Cost, best_fill, ranks_by_price
from broker.domain.placement.tables import Move, Table, table_of
from broker.domain.profiles import Profile


class Engine(StrEnum):
    """The rules by name."""

    BID_PRICE = "bid-price"  # ours
    BEST_FIT = "best-fit"  # where fewest compute slices stay free; of equals the first card
    FIRST_FIT = "first-fit"  # the first card on which it fits

    @property
    def takes_first(self) -> bool:
        """Tell whether of all cards that cost the same the first is taken, in whatever states they are."""
        return self is not Engine.BID_PRICE


@lru_cache(maxsize=1024)
def ranks_of(
    engine: Engine,
    profiles: tuple[Profile, ...],
    grid: int,
    worth: Sequence[float],
    *,
    counted: bool,
    besides: tuple[Profile, ...] = (),
) -> Ranks:
    """Return the ranks of a rule; the older ones know no prices and count no slices."""
    if engine is Engine.BID_PRICE:
        return ranks_by_price(profiles, grid, tuple(worth), counted=counted, besides=besides)
    table = table_of(profiles, grid, besides=besides)
    return ranked(table, _fitting(table, best=engine is Engine.BEST_FIT))


def _fitting(table: Table, *, best: bool) -> Rule:
    """Return the rule that begins a slice in the vendor's order: where most placements stay legal, else high."""
    legal = [sum(len(its[state]) for its in table.moves) for state in range(len(table.states))]
    left = [int(most) for most in best_fill(table, [profile.compute for profile in table.profiles])]

    def cost(_: Table, profile: int, state: int, move: Move) -> Cost:
        first = min(table.moves[profile][state], key=lambda each: (-legal[each.after], -each.start))
        return Cost(
            opens=False,  # to these rules an empty card is one like any other
            loss=float(move != first),
            compute_left=left[move.after] if best else 0,
            quiet=0,
            narrows=0.0,
            strands=0.0,
            units_left=0,
        )

    return cost
