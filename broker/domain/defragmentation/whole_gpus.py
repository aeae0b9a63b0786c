"""Place whole-GPU slices on empty GPUs, then on those emptied by the cheapest relocations."""

from collections.abc import Sequence
from dataclasses import replace

from broker.domain.defragmentation.evacuation import WholeGpuPlacement
from broker.domain.defragmentation.fleet import LiveSlice, SliceFleet
from broker.domain.defragmentation.gpu_drain import drain_gpu, gpus_cheapest_to_empty
from broker.domain.defragmentation.relocation_budget import RelocationBudget
from broker.domain.defragmentation.relocation_draft import RelocationDraft
from broker.domain.placement.costs.state_tables import EMPTY


def place_whole_gpus(
    fleet: SliceFleet, slices: Sequence[LiveSlice], *, gain: int | None = None, budget: RelocationBudget | None = None
) -> WholeGpuPlacement | None:
    """Place whole-GPU slices, emptying as many GPUs as are missing.

    Changes nothing and returns None if that is impossible, costs more than `gain`, or exceeds the budget. Relocated
    slices go to GPUs in use, never to an empty one: that would gain nothing.
    """
    draft, table = RelocationDraft(fleet), fleet.table
    start = table.options[slices[0].profile][EMPTY][0].start
    gpus = sorted(fleet.buckets.gpus_by_state[EMPTY])[: len(slices)]
    for member, gpu in zip(slices, gpus, strict=False):
        draft.place_on(member.with_start(start), gpu)
    filled: set[int] = set()
    for gpu in gpus_cheapest_to_empty(fleet):
        if len(gpus) == len(slices):
            break
        mark = draft.log_position
        if gpu in filled or not drain_gpu(draft, gpu):
            continue
        filled.update(to for to, _ in draft.placed_since(mark))
        draft.place_on(slices[len(gpus)].with_start(start), gpu)
        gpus.append(gpu)
    steps = draft.relocations()
    relocated = [fleet.slices[step.to_gpu][step.to_start] for step in steps]
    too_expensive = gain is not None and sum(step.cost for step in steps) > gain
    if len(gpus) < len(slices) or too_expensive or (budget is not None and not budget.affords(relocated)):
        draft.undo()
        return None
    if budget is not None:
        budget.spend(relocated)
    if steps:
        steps[-1] = replace(steps[-1], gain=gain or 0)
    return WholeGpuPlacement(tuple(gpus), tuple(steps))
