"""Small fleets of partitioned GPUs, drawn as text, for tests of relocations."""

from broker.domain.defragmentation.fleet import LiveSlice, SliceFleet
from broker.domain.placement.buckets.state_buckets import StateBuckets
from broker.domain.placement.costs.bid_price_rule import bid_price_ranks, bid_price_rule
from broker.domain.placement.costs.state_ranks import StateRanks, rank_states
from broker.domain.placement.costs.state_tables import build_state_table
from tests.broker.domain.fleet import FOUR, ONE, ONE_DOUBLE, SEVEN, THREE, TWO

PROFILES = (ONE, ONE_DOUBLE, TWO, THREE, FOUR, SEVEN)
P1, P1_DOUBLE, P2, P3, P4, P7 = range(6)
TABLE = build_state_table(PROFILES, 8)


RANKS: StateRanks = rank_states(TABLE, bid_price_rule(TABLE, [its.memory for its in PROFILES]))
COUNTING = bid_price_ranks(PROFILES, 8, tuple(float(its.memory) for its in PROFILES), counted=True)


def fleet(*gpus: str, per_node: int = 8, ranks: StateRanks = RANKS) -> SliceFleet:
    """Cut GPUs as drawn: in `fleet("3@0 1@4", "7@0!")`, ! means immovable.

    Slices are named by where they lie first: the allocation `1.4` began at unit 4 of GPU 1. `d` is 1g.20gb.
    """
    made = SliceFleet(StateBuckets(ranks, [gpu // per_node for gpu in range(len(gpus))]))
    for gpu, drawing in enumerate(gpus):
        for word in drawing.split():
            shape, start = word.rstrip("!").split("@")
            cost = None if word.endswith("!") else PROFILES["1d2347".index(shape)].memory
            made.place_on(gpu, LiveSlice(f"{gpu}.{start}", "1d2347".index(shape), int(start), cost))
    return made


def draw(fleet: SliceFleet) -> list[str]:
    """Draw GPUs as `fleet` reads them, without saying which slices are immovable."""
    return [" ".join(f"{'1d2347'[each.profile]}@{start}" for start, each in sorted(on.items())) for on in fleet.slices]
