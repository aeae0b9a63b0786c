"""Plan which nodes of a pool to repartition for the present demand.

Few nodes change, and none without a lasting gain.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.domain.repartition.gpu_layouts import GpuLayout, LayoutCatalogue
from broker.domain.repartition.layout_search import best_gpu_layouts
from broker.domain.repartition.served_demand import ProfileSupply, ServedDemand


@dataclass(frozen=True, slots=True)
class CurrentGpu:
    """A GPU's current layout; while a lease holds a slice, it cannot change."""

    index: int
    cut: GpuLayout
    used: bool = False


@dataclass(frozen=True, slots=True)
class CurrentNode:
    """A node's GPUs, and the seconds until its last lease ends (None: unknown)."""

    name: str
    gpus: tuple[CurrentGpu, ...]
    waits_s: int | None = 0
    changed_s_ago: int | None = None
    open: bool = True


@dataclass(frozen=True, slots=True)
class LayoutPlanRules:
    """Limits that keep the layout from flapping."""

    least_gain_milli: int = 125  # least gain of a change, in thousandths of a GPU's worth: one memory unit of eight
    rest_s: int = 900  # seconds until a repartitioned node may change again
    patience_s: int = 3600  # seconds a node may stay closed while its leases end


@dataclass(frozen=True, slots=True)
class NodeLayoutPlan:
    """The new layout of each GPU of a node, with the gain.

    The gain is in thousandths of a GPU's worth.
    """

    node: str
    cuts: tuple[tuple[int, GpuLayout], ...]
    changed: tuple[int, ...]
    gain_milli: int


@dataclass
class _PlanningPool:
    """State of one planning run: the supply, and GPUs that may change."""

    filling: ServedDemand
    rules: LayoutPlanRules
    changeable_gpus: dict[str, list[CurrentGpu]] = field(default_factory=dict)
    nodes: dict[str, CurrentNode] = field(default_factory=dict)


def plan_node_layouts(
    nodes: Sequence[CurrentNode],
    demand: Mapping[str, int],
    catalogue: LayoutCatalogue,
    rules: LayoutPlanRules | None = None,
) -> tuple[NodeLayoutPlan, ...]:
    """Return the nodes worth repartitioning, the best first.

    `demand` counts thousandths of each profile. A GPU that holds a slice never changes. A node whose
    other GPUs are held must wait for them, so idle nodes come first and those that would wait too long
    are left alone.
    """
    rules = rules or LayoutPlanRules()
    filling = ServedDemand(catalogue, demand)
    pool = _PlanningPool(filling, rules, nodes={node.name: node for node in nodes})
    for node in nodes:
        if _may_change(node, rules):
            pool.changeable_gpus[node.name] = [gpu for gpu in node.gpus if not gpu.used]
    fixed = [c.cut for n in nodes for c in n.gpus if n.name not in pool.changeable_gpus or c.used]
    now = [gpu.cut for gpus in pool.changeable_gpus.values() for gpu in gpus]
    wanted = best_gpu_layouts(filling, now, fixed, least_gain=_least_gain(filling, rules))
    return _assign_to_nodes(pool, wanted, [*fixed, *now])


def _may_change(node: CurrentNode, rules: LayoutPlanRules) -> bool:
    rested = node.changed_s_ago is None or node.changed_s_ago >= rules.rest_s
    return node.open and rested and node.waits_s is not None and node.waits_s <= rules.patience_s


def _least_gain(filling: ServedDemand, rules: LayoutPlanRules) -> int:
    # Never zero: every plan must serve more, so that repeated planning terminates.
    return max(filling.gpu_worth * rules.least_gain_milli, 1)


def _assign_to_nodes(
    pool: _PlanningPool, wanted: Iterable[GpuLayout], now: Iterable[GpuLayout]
) -> tuple[NodeLayoutPlan, ...]:
    """Assign the wanted layouts to as few nodes as possible.

    Each node's change is kept only if it is worth it by itself.
    """
    have = Counter(gpu.cut for gpus in pool.changeable_gpus.values() for gpu in gpus)
    want = Counter(wanted)
    spare, missing = have - want, want - have
    supply, plans = pool.filling.supply(now), []
    for name in _node_order(pool, spare):
        tried = _try_node(pool, name, spare, missing, supply)
        if tried.plan.changed and tried.gain >= _least_gain(pool.filling, pool.rules):
            plans.append(tried.plan)
            spare, missing, supply = tried.spare, tried.missing, tried.supply
    return tuple(sorted(plans, key=lambda each: (-each.gain_milli, each.node)))


class _NodeTrial(NamedTuple):
    """The result if a node took as many of the changes as possible."""

    plan: NodeLayoutPlan
    gain: int
    spare: Counter[GpuLayout]
    missing: Counter[GpuLayout]
    supply: ProfileSupply


def _try_node(
    pool: _PlanningPool, name: str, spare: Counter[GpuLayout], missing: Counter[GpuLayout], supply: ProfileSupply
) -> _NodeTrial:
    filling, spare, missing = pool.filling, spare.copy(), missing.copy()
    cuts = {gpu.index: gpu.cut for gpu in pool.nodes[name].gpus}
    before, changed = filling.worth(supply), []
    for gpu in pool.changeable_gpus[name]:
        if spare[gpu.cut]:
            gains = {cut: filling.gain(supply, gpu.cut, cut) for cut in sorted(+missing)}
            best = max(gains, key=lambda cut: gains[cut])
            supply = filling.swapped(supply, gpu.cut, best)
            spare[gpu.cut] -= 1
            missing[best] -= 1
            cuts[gpu.index] = best
            changed.append(gpu.index)
    gain = filling.worth(supply) - before
    plan = NodeLayoutPlan(name, tuple(sorted(cuts.items())), tuple(changed), gain // filling.gpu_worth)
    return _NodeTrial(plan, gain, spare, missing, supply)


def _node_order(pool: _PlanningPool, spare: Counter[GpuLayout]) -> list[str]:
    """Return the nodes in the order to change them.

    Idle ones come first, then those that take most of the changes.
    """

    def absorbs(name: str) -> int:
        return sum((Counter(gpu.cut for gpu in pool.changeable_gpus[name]) & spare).values())

    return sorted(pool.changeable_gpus, key=lambda name: (pool.nodes[name].waits_s or 0, -absorbs(name), name))


RUNNING_WEIGHT, QUEUED_WEIGHT, ENDED_WEIGHT = 1000, 1000, 500
COUNTS_AFTER_S = 120  # seconds; younger requests may still be placed without a change


def weigh_demand(
    live: Mapping[str, int], waiting: Iterable[tuple[str, float]], lately: Mapping[str, int]
) -> dict[str, int]:
    """Weigh the demand in thousandths: running, long-queued and recently ended leases.

    What ended recently counts half: a profile that is requested every quarter of an hour is not given
    up between two of its leases.
    """
    demand: Counter[str] = Counter()
    for profile, count in live.items():
        demand[profile] += RUNNING_WEIGHT * count
    for profile, waited_s in waiting:
        demand[profile] += QUEUED_WEIGHT if waited_s >= COUNTS_AFTER_S else 0
    for profile, count in lately.items():
        demand[profile] += ENDED_WEIGHT * count
    return dict(demand)
