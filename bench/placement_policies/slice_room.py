"""Make room for a slice that fits nowhere by relocating a few small ones.

All of them are relocated or none.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from broker.domain.defragmentation.displacement import DISPLACEMENT_TRIES, place_by_displacing
from broker.domain.defragmentation.fleet import LiveSlice, SliceFleet
from broker.domain.defragmentation.relocation_budget import RelocationBudget
from broker.domain.defragmentation.relocation_draft import RelocationDraft, SliceRelocation
from broker.domain.defragmentation.relocation_order import order_relocations
from broker.domain.placement.costs.state_tables import StateTable


@dataclass(frozen=True, slots=True)
class SliceRoom:
    """The slot of the slice, and the relocations needed first, in order."""

    gpu: int
    start: int
    steps: tuple[SliceRelocation, ...]


def displacement_tries(table: StateTable, profile: int) -> tuple[int, ...]:
    """Return how many ways to try, as far as they are worth their relocations.

    One slice is displaced for more than a third of a GPU, two for more than half of one. Smaller slices
    fit nearly everywhere, and one that is forced in on a full fleet takes the room of those that do
    not.
    """
    its, whole = table.profiles[profile], max(each.compute for each in table.profiles)
    part = its.compute / whole if its.compute else its.memory / table.grid  # a share has no compute slices of its own
    return DISPLACEMENT_TRIES if part > 1 / 2 else DISPLACEMENT_TRIES[:1] if part > 1 / 3 else ()


def make_room_for_slice(
    fleet: SliceFleet,
    wanted: LiveSlice,
    *,
    tries: Sequence[int] | None = None,
    gain: int | None = None,
    budget: RelocationBudget | None = None,
) -> SliceRoom | None:
    """Place a slice, relocating a few others if it fits nowhere.

    Changes nothing and returns None if that is impossible. Afterwards the fleet is as after the last
    relocation, and the slice is held. Relocations that together cost more than the gain, or than the
    budget allows, are not made. `tries` says how hard to search, as `place_by_displacing` takes it.
    """
    if slot := fleet.place_cheapest(wanted):
        return SliceRoom(*slot, ())

    def may(pieces: list[LiveSlice]) -> bool:
        return (gain is None or sum(piece.cost or 0 for piece in pieces) <= gain) and (
            budget is None or budget.affords(pieces)
        )

    draft, table = RelocationDraft(fleet), fleet.table
    tries = displacement_tries(table, wanted.profile) if tries is None else tries
    if place_by_displacing(draft, wanted, tries, may) and (steps := order_relocations(table, draft.relocations())):
        if budget is not None:
            budget.spend(fleet.slices[step.to_gpu][step.to_start] for step in steps)
        steps[-1] = replace(steps[-1], gain=gain or 0)
        return SliceRoom(fleet.gpu_of[wanted.allocation], fleet.start_of[wanted.allocation], tuple(steps))
    draft.undo()
    return None
