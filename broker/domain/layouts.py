"""Which nodes of a pool should be cut differently, for the demand there is: few changes, and none for a whim."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.domain.best_cuts import best_cuts
from broker.domain.cuts import Catalogue, Cut
from broker.domain.filling import Filling, Supply


@dataclass(frozen=True, slots=True)
class CardNow:
    """A card as it is cut; `held` when a lease has any slice of it, and then it stays as it is."""

    index: int
    cut: Cut
    held: bool = False


@dataclass(frozen=True, slots=True)
class NodeNow:
    """A node's cards, and how long it would stand closed until its last lease has left (None: nobody knows)."""

    name: str
    cards: tuple[CardNow, ...]
    waits_s: int | None = 0
    changed_s_ago: int | None = None
    open: bool = True


@dataclass(frozen=True, slots=True)
class Rules:
    """What keeps the layout from flapping."""

    least_gain_milli: int = (
        125  # what a change must win, in thousandths of a card's worth: one memory unit of eight
    )
    rest_s: int = 900  # a node that was cut is left alone for so long
    patience_s: int = 3600  # how long a node may stand closed to wait for its leases


@dataclass(frozen=True, slots=True)
class NodePlan:
    """What a node should be cut into, card by card, and what that wins in thousandths of a card's worth."""

    node: str
    cuts: tuple[tuple[int, Cut], ...]
    changed: tuple[int, ...]
    gain_milli: int


@dataclass
class _Pool:
    """The planner's desk: supply as it stands, and cards that may be cut anew."""

    filling: Filling
    rules: Rules
    free: dict[str, list[CardNow]] = field(default_factory=dict)
    nodes: dict[str, NodeNow] = field(default_factory=dict)


def plan(
    nodes: Sequence[NodeNow], demand: Mapping[str, int], catalogue: Catalogue, rules: Rules | None = None
) -> tuple[NodePlan, ...]:
    """Return the nodes worth cutting anew, the best first; `demand` counts thousandths of each profile.

    A card that holds a slice never changes. A node whose other cards are held must wait for them, so idle nodes
    come first and those that would wait too long are left alone.
    """
    rules = rules or Rules()
    filling = Filling(catalogue, demand)
    pool = _Pool(filling, rules, nodes={node.name: node for node in nodes})
    for node in nodes:
        if _may_change(node, rules):
            pool.free[node.name] = [card for card in node.cards if not card.held]
    fixed = [c.cut for n in nodes for c in n.cards if n.name not in pool.free or c.held]
    now = [card.cut for cards in pool.free.values() for card in cards]
    wanted = best_cuts(filling, now, fixed, least_gain=_least(filling, rules))
    return _spread(pool, wanted, [*fixed, *now])


def _may_change(node: NodeNow, rules: Rules) -> bool:
    rested = node.changed_s_ago is None or node.changed_s_ago >= rules.rest_s
    return node.open and rested and node.waits_s is not None and node.waits_s <= rules.patience_s


def _least(filling: Filling, rules: Rules) -> int:
    # Never nothing: what is served rises with every plan, and so planning again and again comes to rest.
    return max(filling.card_worth * rules.least_gain_milli, 1)


def _spread(pool: _Pool, wanted: Iterable[Cut], now: Iterable[Cut]) -> tuple[NodePlan, ...]:
    """Give the wanted cuts to as few nodes as possible, and keep each change only if it is worth it by itself."""
    have = Counter(card.cut for cards in pool.free.values() for card in cards)
    want = Counter(wanted)
    spare, missing = have - want, want - have
    supply, plans = pool.filling.supply(now), []
    for name in _in_order(pool, spare):
        tried = _recut(pool, name, spare, missing, supply)
        if tried.plan.changed and tried.gain >= _least(pool.filling, pool.rules):
            plans.append(tried.plan)
            spare, missing, supply = tried.spare, tried.missing, tried.supply
    return tuple(sorted(plans, key=lambda each: (-each.gain_milli, each.node)))


class _Tried(NamedTuple):
    """What would be if a node took as many of the changes as it can."""

    plan: NodePlan
    gain: int
    spare: Counter[Cut]
    missing: Counter[Cut]
    supply: Supply


def _recut(pool: _Pool, name: str, spare: Counter[Cut], missing: Counter[Cut], supply: Supply) -> _Tried:
    filling, spare, missing = pool.filling, spare.copy(), missing.copy()
    cuts = {card.index: card.cut for card in pool.nodes[name].cards}
    before, changed = filling.worth(supply), []
    for card in pool.free[name]:
        if spare[card.cut]:
            gains = {cut: filling.gain(supply, card.cut, cut) for cut in sorted(+missing)}
            best = max(gains, key=lambda cut: gains[cut])
            supply = filling.swapped(supply, card.cut, best)
            spare[card.cut] -= 1
            missing[best] -= 1
            cuts[card.index] = best
            changed.append(card.index)
    gain = filling.worth(supply) - before
    plan = NodePlan(name, tuple(sorted(cuts.items())), tuple(changed), gain // filling.card_worth)
    return _Tried(plan, gain, spare, missing, supply)


def _in_order(pool: _Pool, spare: Counter[Cut]) -> list[str]:
    """Name the nodes in the order to change them: idle ones first, then those that take most of the changes."""

    def absorbs(name: str) -> int:
        return sum((Counter(card.cut for card in pool.free[name]) & spare).values())

    return sorted(pool.free, key=lambda name: (pool.nodes[name].waits_s or 0, -absorbs(name), name))


LIVE, WAITING, LATELY = 1000, 1000, 500
SOON = 120  # younger requests may find a place by themselves


def demand_of(
    live: Mapping[str, int], waiting: Iterable[tuple[str, float]], lately: Mapping[str, int]
) -> dict[str, int]:
    """Weigh what is asked for, in thousandths: leases that run, that have waited for a while, that ended lately.

    What ended lately still counts for half: a shape that is asked for every quarter of an hour is not given up
    between two of its leases.
    """
    demand: Counter[str] = Counter()
    for profile, count in live.items():
        demand[profile] += LIVE * count
    for profile, waited_s in waiting:
        demand[profile] += WAITING if waited_s >= SOON else 0
    for profile, count in lately.items():
        demand[profile] += LATELY * count
    return dict(demand)
