"""Empty a GPU after a release by relocating the few slices left on it."""

from broker.domain.defragmentation.fleet import SliceFleet
from broker.domain.defragmentation.gpu_drain import drain_gpu
from broker.domain.defragmentation.relocation_budget import RelocationBudget
from broker.domain.defragmentation.relocation_draft import RelocationDraft, SliceRelocation


def consolidate_gpu(
    fleet: SliceFleet, gpu: int, *, compute: int = 2, budget: RelocationBudget | None = None
) -> tuple[SliceRelocation, ...]:
    """Empty a GPU with little compute in use; return the relocations made.

    All slices are relocated or none.
    """
    pieces = list(fleet.slices[gpu].values())
    if not pieces or sum(fleet.table.profiles[piece.profile].compute for piece in pieces) > compute:
        return ()
    if budget is not None and not budget.affords(pieces):
        return ()
    draft = RelocationDraft(fleet)
    if not drain_gpu(draft, gpu):
        return ()
    if budget is not None:
        budget.spend(pieces)
    # All targets are free from the start, so any order is possible.
    return tuple(draft.relocations())
