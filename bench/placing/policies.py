"""Every policy that is compared, by the name it has in the tables."""

from collections.abc import Callable, Sequence
from random import Random

from bench.placing import rules
from bench.placing.cards import COUNTED, MODEL, PROFILES, TABLE
from bench.placing.fleets import Bucketed, FirstFit, Fleet, Oracle
from bench.placing.moving import Freedom, Moved
from bench.placing.selling import SOLD, Sold
from broker.domain.placement import prices
from broker.domain.placement.ranks import Ranks, Rule, ranked
from broker.domain.placement.rules import bid_price

ORACLE, OURS, UNTOLD = "oracle", "bp", "bp untold"
PEERS = ("mcc", "ff_nv", "ff_hami", "bf", "mfi", "fgd", "fgdb", "pvb")
MOVING = {
    "bp+r": Freedom(on_a_miss=True, on_a_release=False),
    "bp+c": Freedom(on_a_miss=False, on_a_release=True),
}
Make = Callable[[Sequence[int]], Fleet]


def policies(forecast: Sequence[float], seed: int) -> dict[str, Make]:
    """Return what makes a fleet of each policy, for those that want a forecast by profile with this one."""
    popularity = _popularity(forecast)
    by_rule: dict[str, Rule] = {
        "mcc": rules.most_legal,
        "bf": rules.best_fit,
        "mfi": rules.least_blocked,
        "fgd": rules.fgd(popularity),
        "fgdb": rules.fgd(popularity, fullest=True),
        "pvb": rules.compute_value(popularity),
    }
    found: dict[str, Make] = {
        "ff_nv": lambda nodes: FirstFit(ranked(TABLE, rules.in_vendor_order), nodes),
        "ff_hami": lambda nodes: FirstFit(ranked(TABLE, rules.in_hami_order), nodes),
        ORACLE: Oracle,
        SOLD: Sold,
    }
    for name, rule in by_rule.items():
        found[name] = lambda nodes, rule=rule: Bucketed(ranked(TABLE, rule), nodes)
    ours = told(forecast, seed)
    found[UNTOLD] = lambda nodes: Bucketed(untold(), nodes)
    found[OURS] = lambda nodes: Bucketed(ours, nodes)
    for name, freedom in MOVING.items():
        found[name] = lambda nodes, freedom=freedom: Moved(ours, nodes, freedom)
    return found


def told(forecast: Sequence[float], seed: int) -> Ranks:
    """Return our ranks at the prices of this demand."""
    chance = Random(f"prices {seed}").random
    worth = prices.duals(PROFILES, MODEL.grid, forecast, chance=chance, compute=MODEL.compute)
    return ranked(COUNTED, bid_price(COUNTED, worth, _popularity(forecast)))


def _popularity(forecast: Sequence[float]) -> list[float]:
    return [each / sum(forecast) for each in forecast]


def untold() -> Ranks:
    """Return our ranks at the prices that need no forecast."""
    return ranked(COUNTED, bid_price(COUNTED, prices.default(PROFILES, MODEL.grid, MODEL.compute)))
