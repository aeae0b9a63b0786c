"""Policies that are compared, by their name in the tables."""

from collections.abc import Callable, Sequence
from random import Random

from bench.placement_policies import rules
from bench.placement_policies.fleets import Bucketed, FirstFit, Fleet, Oracle
from bench.placement_policies.gpu_profiles import COUNTED, MODEL, PROFILES, TABLE
from bench.placement_policies.product_rule import SOLD, Sold
from bench.placement_policies.relocating_fleet import Freedom, Moved
from broker.domain.placement.costs import slice_prices
from broker.domain.placement.costs.bid_price_rule import bid_price_rule
from broker.domain.placement.costs.state_ranks import CostRule, StateRanks, rank_states

ORACLE, OURS, UNTOLD = "oracle", "bp", "bp ranks_without_forecast"
PEERS = ("mcc", "ff_nv", "ff_hami", "bf", "mfi", "fgd", "fgdb", "pvb")
MOVING = {
    "bp+r": Freedom(on_a_miss=True, on_a_release=False),
    "bp+c": Freedom(on_a_miss=False, on_a_release=True),
}
Make = Callable[[Sequence[int]], Fleet]


def policies(forecast: Sequence[float], seed: int) -> dict[str, Make]:
    """Return the fleet factory of each policy, with this forecast by profile where used."""
    popularity = _popularity(forecast)
    by_rule: dict[str, CostRule] = {
        "mcc": rules.most_legal,
        "bf": rules.best_fit,
        "mfi": rules.least_blocked,
        "fgd": rules.fgd(popularity),
        "fgdb": rules.fgd(popularity, fullest=True),
        "pvb": rules.compute_value(popularity),
    }
    found: dict[str, Make] = {
        "ff_nv": lambda nodes: FirstFit(rank_states(TABLE, rules.in_vendor_order), nodes),
        "ff_hami": lambda nodes: FirstFit(rank_states(TABLE, rules.in_hami_order), nodes),
        ORACLE: Oracle,
        SOLD: Sold,
    }
    for name, rule in by_rule.items():
        found[name] = lambda nodes, rule=rule: Bucketed(rank_states(TABLE, rule), nodes)
    ours = ranks_for_demand(forecast, seed)
    found[UNTOLD] = lambda nodes: Bucketed(ranks_without_forecast(), nodes)
    found[OURS] = lambda nodes: Bucketed(ours, nodes)
    for name, freedom in MOVING.items():
        found[name] = lambda nodes, freedom=freedom: Moved(ours, nodes, freedom)
    return found


def ranks_for_demand(forecast: Sequence[float], seed: int) -> StateRanks:
    """Return our ranks at the prices of this demand."""
    rng = Random(f"prices {seed}").random
    worth = slice_prices.dual_prices(PROFILES, MODEL.grid, forecast, rng=rng, compute=MODEL.compute)
    return rank_states(COUNTED, bid_price_rule(COUNTED, worth, _popularity(forecast)))


def _popularity(forecast: Sequence[float]) -> list[float]:
    return [each / sum(forecast) for each in forecast]


def ranks_without_forecast() -> StateRanks:
    """Return our ranks at the prices that need no forecast."""
    return rank_states(
        COUNTED, bid_price_rule(COUNTED, slice_prices.default_prices(PROFILES, MODEL.grid, MODEL.compute))
    )
