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
    layout: GpuLayout
    in_use: bool = False


@dataclass(frozen=True, slots=True)
class CurrentNode:
    """A node's GPUs, and the seconds until its last lease ends (None: unknown)."""

    name: str
    gpus: tuple[CurrentGpu, ...]
    until_idle_s: int | None = 0
    since_change_s: int | None = None
    changeable: bool = True  # in service, and no other change of it is under way


@dataclass(frozen=True, slots=True)
class LayoutPlanRules:
    """Limits that keep the layout from flapping."""

    min_gain_milli: int = 125  # least gain of a change, in thousandths of a GPU's worth: one memory unit of eight
    cooldown_s: int = 900  # seconds until a repartitioned node may change again
    max_drain_s: int = 3600  # seconds a node may stay closed while its leases end


@dataclass(frozen=True, slots=True)
class NodeLayoutPlan:
    """The new layout of each GPU of a node, with the gain.

    The gain is in thousandths of a GPU's worth.
    """

    node: str
    layouts: tuple[tuple[int, GpuLayout], ...]
    changed_gpus: tuple[int, ...]
    gain_milli: int


@dataclass
class _PlanningPool:
    """State of one planning run: the supply, and GPUs that may change."""

    demand: ServedDemand
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
    served_demand = ServedDemand(catalogue, demand)
    pool = _PlanningPool(served_demand, rules, nodes={node.name: node for node in nodes})
    for node in nodes:
        if _may_change(node, rules):
            pool.changeable_gpus[node.name] = [gpu for gpu in node.gpus if not gpu.in_use]
    fixed = [c.layout for n in nodes for c in n.gpus if n.name not in pool.changeable_gpus or c.in_use]
    current = [gpu.layout for gpus in pool.changeable_gpus.values() for gpu in gpus]
    wanted = best_gpu_layouts(served_demand, current, fixed, min_gain=_min_gain(served_demand, rules))
    return _assign_to_nodes(pool, wanted, [*fixed, *current])


def _may_change(node: CurrentNode, rules: LayoutPlanRules) -> bool:
    rested = node.since_change_s is None or node.since_change_s >= rules.cooldown_s
    return node.changeable and rested and node.until_idle_s is not None and node.until_idle_s <= rules.max_drain_s


def _min_gain(demand: ServedDemand, rules: LayoutPlanRules) -> int:
    # Never zero: every plan must serve more, so that repeated planning terminates.
    return max(demand.gpu_value * rules.min_gain_milli, 1)


def _assign_to_nodes(
    pool: _PlanningPool, wanted: Iterable[GpuLayout], current: Iterable[GpuLayout]
) -> tuple[NodeLayoutPlan, ...]:
    """Assign the wanted layouts to as few nodes as possible.

    Each node's change is kept only if it is worth it by itself.
    """
    have = Counter(gpu.layout for gpus in pool.changeable_gpus.values() for gpu in gpus)
    want = Counter(wanted)
    spare, missing = have - want, want - have
    supply, plans = pool.demand.total_slices(current), []
    for name in _node_order(pool, spare):
        tried = _try_node(pool, name, spare, missing, supply)
        if tried.plan.changed_gpus and tried.gain >= _min_gain(pool.demand, pool.rules):
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
    demand, spare, missing = pool.demand, spare.copy(), missing.copy()
    layouts = {gpu.index: gpu.layout for gpu in pool.nodes[name].gpus}
    before, changed = demand.served_value(supply), []
    for gpu in pool.changeable_gpus[name]:
        if spare[gpu.layout]:
            gains = {layout: demand.value_gain(supply, gpu.layout, layout) for layout in sorted(+missing)}
            best = max(gains, key=lambda layout: gains[layout])
            supply = demand.slices_after_change(supply, gpu.layout, best)
            spare[gpu.layout] -= 1
            missing[best] -= 1
            layouts[gpu.index] = best
            changed.append(gpu.index)
    gain = demand.served_value(supply) - before
    plan = NodeLayoutPlan(name, tuple(sorted(layouts.items())), tuple(changed), gain // demand.gpu_value)
    return _NodeTrial(plan, gain, spare, missing, supply)


def _node_order(pool: _PlanningPool, spare: Counter[GpuLayout]) -> list[str]:
    """Return the nodes in the order to change them.

    Idle ones come first, then those that take most of the changes.
    """

    def absorbs(name: str) -> int:
        return sum((Counter(gpu.layout for gpu in pool.changeable_gpus[name]) & spare).values())

    return sorted(pool.changeable_gpus, key=lambda name: (pool.nodes[name].until_idle_s or 0, -absorbs(name), name))


RUNNING_WEIGHT, QUEUED_WEIGHT, ENDED_WEIGHT = 1000, 1000, 500
MIN_QUEUED_S = 120  # seconds; younger requests may still be placed without a change


def weigh_demand(
    running: Mapping[str, int], queued: Iterable[tuple[str, float]], recently_ended: Mapping[str, int]
) -> dict[str, int]:
    """Weigh the demand in thousandths: running, long-queued and recently ended leases.

    What ended recently counts half: a profile that is requested every quarter of an hour is not given
    up between two of its leases.
    """
    demand: Counter[str] = Counter()
    for profile, count in running.items():
        demand[profile] += RUNNING_WEIGHT * count
    for profile, waited_s in queued:
        demand[profile] += QUEUED_WEIGHT if waited_s >= MIN_QUEUED_S else 0
    for profile, count in recently_ended.items():
        demand[profile] += ENDED_WEIGHT * count
    return dict(demand)
