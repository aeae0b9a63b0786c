"""Small fleets of cut cards, drawn as text, for the tests of moves."""

from broker.domain.placement.buckets import Buckets
from broker.domain.placement.fleet import Fleet, Slice
from broker.domain.placement.ranks import Ranks, ranked
from broker.domain.placement.rules import bid_price, ranks_by_price
from broker.domain.placement.tables import table_of
from tests.broker.domain.fleet import FOUR, ONE, ONE_DOUBLE, SEVEN, THREE, TWO

PROFILES = (ONE, ONE_DOUBLE, TWO, THREE, FOUR, SEVEN)
P1, P1_DOUBLE, P2, P3, P4, P7 = range(6)
TABLE = table_of(PROFILES, 8)


RANKS: Ranks = ranked(TABLE, bid_price(TABLE, [its.memory for its in PROFILES]))
COUNTING = ranks_by_price(PROFILES, 8, tuple(float(its.memory) for its in PROFILES), counted=True)


def fleet(*cards: str, per_node: int = 8, ranks: Ranks = RANKS) -> Fleet:
    """Cut cards as drawn: `fleet("3@0 1@4", "7@0!")` has two, the second with a slice that must not be moved.

    Slices are named by where they lie first: the allocation `1.4` began at unit 4 of card 1. `d` is 1g.20gb.
    """
    made = Fleet(Buckets(ranks, [card // per_node for card in range(len(cards))]))
    for card, drawn in enumerate(cards):
        for word in drawn.split():
            shape, start = word.rstrip("!").split("@")
            cost = None if word.endswith("!") else PROFILES["1d2347".index(shape)].memory
            made.hold(card, Slice(f"{card}.{start}", "1d2347".index(shape), int(start), cost))
    return made


def drawn(fleet: Fleet) -> list[str]:
    """Draw cards as `fleet` reads them, without saying what may be moved."""
    return [
        " ".join(f"{'1d2347'[piece.profile]}@{start}" for start, piece in sorted(on.items()))
        for on in fleet.on
    ]
