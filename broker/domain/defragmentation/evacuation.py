"""Provide whole GPUs for a gang on one node by relocating slices.

The node is chosen where fewest and cheapest slices must be relocated.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice

from broker.domain.defragmentation.fleet import LiveSlice, SliceFleet
from broker.domain.defragmentation.gpu_drain import slices_largest_first
from broker.domain.defragmentation.relocation_budget import RelocationBudget
from broker.domain.defragmentation.relocation_draft import RelocationDraft, SliceRelocation
from broker.domain.placement.costs.state_tables import EMPTY, NO_STATE

GpuLoad = tuple[int, int, int]  # slices on a GPU, cost of relocating them all, the GPU
AreNear = Callable[[tuple[int, ...]], bool]  # whether GPUs of one node are near enough to each other


@dataclass(frozen=True, slots=True)
class WholeGpuPlacement:
    """The GPUs of the gang, one per member, and the relocations needed first."""

    gpus: tuple[int, ...]
    steps: tuple[SliceRelocation, ...]


def evacuate_node(
    fleet: SliceFleet,
    gang: Sequence[LiveSlice],
    *,
    max_nodes: int = 16,
    relocate_whole_gpus: bool = True,
    are_near: AreNear | None = None,
    use_empty_gpus: bool = False,
    gain: int | None = None,
    budget: RelocationBudget | None = None,
) -> WholeGpuPlacement | None:
    """Place a gang of whole GPUs on one node by relocating slices.

    Changes nothing and returns None if that is impossible, costs more than `gain`, or exceeds the budget. A slice goes
    to a GPU in use, with `use_empty_gpus` also to an empty one; a slice that is a whole GPU goes to an empty GPU of
    another node, with `relocate_whole_gpus` only. At most `max_nodes` nodes are tried, in the order of what must be
    relocated. `are_near` says which GPUs of a node may be taken together; without it all.
    """
    for gpus in _cheapest_gpu_sets(fleet, len(gang), max_nodes, relocate_whole_gpus, are_near):
        others = slices_largest_first(fleet, gpus)
        if budget is not None and not budget.affords(others):
            continue
        if gain is not None and sum(piece.cost or 0 for piece in others) > gain:
            continue
        steps = _relocate_others(fleet, gang, gpus, others, use_empty_gpus, gain or 0)
        if steps is not None:
            if budget is not None:
                budget.spend(others)
            return WholeGpuPlacement(gpus, tuple(steps))
    return None


def _cheapest_gpu_sets(
    fleet: SliceFleet, count: int, max_nodes: int, relocate_whole_gpus: bool, are_near: AreNear | None
) -> list[tuple[int, ...]]:
    """Return the GPUs to take on each node, the cheapest node first."""
    on_node = _emptiable_gpus(fleet, relocate_whole_gpus)
    found = []
    for node, loads in on_node.items():
        if len(loads) >= count:
            taken = sorted(loads)[:count]
            found.append((*_total_load(taken), node, taken))
    found.sort()
    if are_near is None:
        return [_gpus_of(taken) for _, _, _, taken in found[:max_nodes]]
    # The cheapest cost regardless of links is a lower bound, so it gives the order to try.
    linked = (_cheapest_linked(on_node[node], count, are_near) for _, _, node, _ in found)
    tried = islice((taken for taken in linked if taken), max_nodes)
    return [_gpus_of(taken) for taken in sorted(tried, key=lambda taken: (*_total_load(taken), taken))]


def _emptiable_gpus(fleet: SliceFleet, relocate_whole_gpus: bool) -> dict[int, list[GpuLoad]]:
    """Return, by node, the GPUs that could be emptied and the cost."""
    on_node: defaultdict[int, list[GpuLoad]] = defaultdict(list)
    stays = [not relocate_whole_gpus and its.memory == fleet.table.grid for its in fleet.table.profiles]
    for gpu, (node, state) in enumerate(zip(fleet.buckets.node_of, fleet.buckets.state_of, strict=True)):
        cost = 0
        for piece in fleet.slices[gpu].values():
            if piece.cost is None or stays[piece.profile]:
                break
            cost += piece.cost
        else:
            if state != NO_STATE:
                on_node[node].append((len(fleet.slices[gpu]), cost, gpu))
    return on_node


def _cheapest_linked(loads: Sequence[GpuLoad], count: int, are_near: AreNear) -> tuple[GpuLoad, ...] | None:
    """Return the cheapest GPUs of a node that are near enough to each other."""
    sets = (chosen for chosen in combinations(sorted(loads), count) if are_near(_gpus_of(chosen)))
    return min(sets, key=lambda chosen: (*_total_load(chosen), chosen), default=None)


def _total_load(loads: Sequence[GpuLoad]) -> tuple[int, int]:
    return sum(load[0] for load in loads), sum(load[1] for load in loads)


def _gpus_of(loads: Sequence[GpuLoad]) -> tuple[int, ...]:
    return tuple(gpu for _, _, gpu in loads)


def _relocate_others(
    fleet: SliceFleet,
    gang: Sequence[LiveSlice],
    gpus: tuple[int, ...],
    others: list[LiveSlice],
    use_empty_gpus: bool,
    gain: int,
) -> list[SliceRelocation] | None:
    table, draft = fleet.table, RelocationDraft(fleet)
    for piece in others:
        draft.remove(piece.allocation)
    for member, gpu in zip(gang, gpus, strict=True):
        draft.place_on(member.with_start(table.options[member.profile][EMPTY][0].start), gpu)
    if all(
        draft.place_cheapest(piece, use_empty_gpus=table.profiles[piece.profile].memory == table.grid)
        or (use_empty_gpus and draft.place_cheapest(piece, use_empty_gpus=True))
        for piece in others
    ):
        steps = draft.relocations()
        if steps:
            steps[-1] = replace(steps[-1], gain=gain)
        return steps
    draft.undo()
    return None
