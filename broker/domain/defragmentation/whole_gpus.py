"""Provide whole GPUs on any node: empty ones first, then the cheapest to empty."""

from collections.abc import Sequence
from dataclasses import replace

from broker.domain.defragmentation.evacuation import NodeEvacuation
from broker.domain.defragmentation.fleet import LiveSlice, SliceFleet
from broker.domain.defragmentation.gpu_drain import drain_gpu, gpus_cheapest_to_empty
from broker.domain.defragmentation.relocation_budget import RelocationBudget
from broker.domain.defragmentation.relocation_draft import RelocationDraft
from broker.domain.placement.costs.state_tables import EMPTY


def free_whole_gpus(
    fleet: SliceFleet, wanted: Sequence[LiveSlice], *, gain: int | None = None, budget: RelocationBudget | None = None
) -> NodeEvacuation | None:
    """Place whole-GPU slices, emptying as many GPUs as are missing.

    Changes nothing and returns None if that is impossible. Relocated slices go to GPUs in use, never to
    an empty one: that would gain nothing.
    """
    draft, table = RelocationDraft(fleet), fleet.table
    start = table.moves[wanted[0].profile][EMPTY][0].start
    gpus = sorted(fleet.buckets.gpus[EMPTY])[: len(wanted)]
    for member, gpu in zip(wanted, gpus, strict=False):
        draft.put(member.at(start), gpu)
    filled: set[int] = set()
    for gpu in gpus_cheapest_to_empty(fleet):
        if len(gpus) == len(wanted):
            break
        mark = draft.mark
        if gpu in filled or not drain_gpu(draft, gpu):
            continue
        filled.update(to for to, _ in draft.put_down(mark))
        draft.put(wanted[len(gpus)].at(start), gpu)
        gpus.append(gpu)
    steps = draft.moved()
    moved = [fleet.on[step.to_gpu][step.to_start] for step in steps]
    dear = gain is not None and sum(step.cost for step in steps) > gain
    if len(gpus) < len(wanted) or dear or (budget is not None and not budget.affords(moved)):
        draft.undo()
        return None
    if budget is not None:
        budget.spend(moved)
    if steps:
        steps[-1] = replace(steps[-1], gain=gain or 0)
    return NodeEvacuation(tuple(gpus), tuple(steps))
