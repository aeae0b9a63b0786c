"""Plan relocations across a pool that empty GPUs; nothing is changed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from broker.domain.defragmentation.fleet import SliceFleet
from broker.domain.defragmentation.gpu_drain import drain_gpu, gpus_cheapest_to_empty
from broker.domain.defragmentation.relocation_budget import RelocationBudget
from broker.domain.defragmentation.relocation_draft import RelocationDraft, SliceRelocation
from broker.domain.defragmentation.relocation_order import order_relocations
from broker.domain.defragmentation.slice_exchange import exchange_wasteful_slices
from broker.domain.placement.costs.minimum_gpus import min_gpus
from broker.domain.placement.costs.state_tables import EMPTY

DRAIN_TRIES = (6, 3)


@dataclass(frozen=True, slots=True)
class DefragmentationPlan:
    """Relocations in a possible order, with the GPUs in use before and after."""

    reason: str
    steps: tuple[SliceRelocation, ...]
    gpus_before: int
    gpus_after: int
    min_gpus: int | None  # the fewest GPUs any plan could need, where that is known

    @property
    def cost(self) -> int:
        return sum(step.cost for step in self.steps)

    @property
    def gain(self) -> int:
        return sum(step.gain for step in self.steps)

    @property
    def inverse(self) -> tuple[SliceRelocation, ...]:
        """The relocations that undo the plan once all have been made."""
        return tuple(step.inverse for step in reversed(self.steps))


def plan_defragmentation(
    fleet: SliceFleet,
    *,
    reason: str = "",
    gain: int | None = None,
    budget: RelocationBudget | None = None,
    tries: Sequence[int] = DRAIN_TRIES,
) -> DefragmentationPlan:
    """Plan how to empty as many GPUs as possible, the cheapest first.

    `gain` is what one more empty GPU is worth: no GPU is emptied at a higher cost. Each GPU is emptied
    completely or not at all. The fleet is not changed, and equal fleets have equal plans.
    """
    draft, min_in_use = RelocationDraft(fleet.copy()), _fewest_gpus(fleet)
    before = draft.fleet.gpus_in_use
    _empty_gpus(draft, gpus_cheapest_to_empty(draft.fleet), (), min_in_use, gain, budget)
    simple, after = draft.log_position, draft.fleet.gpus_in_use
    if after != min_in_use:
        sources = gpus_cheapest_to_empty(draft.fleet)
        exchange_wasteful_slices(draft, sources)
        _empty_gpus(draft, sources, tries, min_in_use, gain, budget)
        if draft.fleet.gpus_in_use == after:
            draft.undo(simple)  # exchanges alone empty no GPU
    steps = order_relocations(fleet.table, draft.relocations(), min(fleet.buckets.gpus_by_state[EMPTY], default=None))
    if steps is None:  # up to `simple`, all targets were free from the start
        draft.undo(simple)
        steps = draft.relocations()
    return DefragmentationPlan(
        reason, _assign_gains(fleet, steps, gain or 0), before, draft.fleet.gpus_in_use, min_in_use
    )


def _fewest_gpus(fleet: SliceFleet) -> int | None:
    counts = [0] * len(fleet.table.profiles)
    for on in fleet.slices:
        for piece in on.values():
            counts[piece.profile] += 1
    try:
        return min_gpus(fleet.table, counts)
    except ValueError:  # no closed form is known for GPUs of this kind
        return None


def _empty_gpus(
    draft: RelocationDraft,
    sources: Sequence[int],
    tries: Sequence[int],
    target: int | None,
    gain: int | None,
    budget: RelocationBudget | None,
) -> None:
    """Empty one GPU after another, each completely or not at all.

    Stops when nothing more can be gained.
    """
    fleet = draft.fleet
    stuck: set[int] = set()  # shapes that found no room: room only shrinks from GPU to GPU
    filled: set[int] = set()
    for gpu in sources:
        if fleet.gpus_in_use == target:
            return
        shape, mark = fleet.shapes.shape_of[gpu], draft.log_position
        if gpu in filled or shape in stuck:
            continue
        if not drain_gpu(draft, gpu, tries):
            stuck.add(shape)
            continue
        placed = draft.placed_since(mark)
        pieces = [piece for _, piece in placed]
        too_expensive = gain is not None and sum(piece.cost or 0 for piece in pieces) > gain
        if too_expensive or (budget is not None and not budget.affords(pieces)):
            draft.undo(mark)
            continue
        if budget is not None:
            budget.spend(pieces)
        filled.update(to for to, _ in placed)


def _assign_gains(fleet: SliceFleet, steps: Sequence[SliceRelocation], gain: int) -> tuple[SliceRelocation, ...]:
    """Assign the gain of an emptied GPU to the relocation that completes it."""
    on = {step.gpu: len(fleet.slices[step.gpu]) for step in steps}
    for step in steps:
        on[step.to_gpu] = on.get(step.to_gpu, len(fleet.slices[step.to_gpu])) + 1
        on[step.gpu] -= 1
    last = {step.gpu: number for number, step in enumerate(steps) if fleet.slices[step.gpu]}
    return tuple(
        replace(step, gain=gain) if last.get(step.gpu) == number and not on[step.gpu] else step
        for number, step in enumerate(steps)
    )
