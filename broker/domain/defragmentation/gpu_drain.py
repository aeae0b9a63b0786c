"""Empty GPUs by relocating all their slices, or leave them unchanged."""

from collections.abc import Iterable, Sequence

from broker.domain.defragmentation.displacement import place_by_displacing
from broker.domain.defragmentation.fleet import LiveSlice, SliceFleet
from broker.domain.defragmentation.relocation_draft import RelocationDraft


def slices_largest_first(fleet: SliceFleet, gpus: Iterable[int]) -> list[LiveSlice]:
    """Return all slices of these GPUs, those hardest to place first."""
    pieces = [piece for gpu in gpus for piece in fleet.slices[gpu].values()]
    return sorted(pieces, key=lambda piece: (-fleet.table.profiles[piece.profile].memory, piece.allocation))


def gpus_cheapest_to_empty(fleet: SliceFleet) -> list[int]:
    """Return the GPUs that are worth emptying, the cheapest first."""
    whole = [profile.memory == fleet.table.grid for profile in fleet.table.profiles]
    found = []
    for gpu, on in enumerate(fleet.slices):
        cost = 0
        for piece in on.values():
            if piece.cost is None or whole[piece.profile]:
                break
            cost += piece.cost
        else:
            if on:
                found.append((cost, gpu))
    return [gpu for _, gpu in sorted(found)]


def drain_gpu(draft: RelocationDraft, gpu: int, tries: Sequence[int] = ()) -> bool:
    """Relocate everything from a GPU to GPUs already in use; False if impossible.

    Then nothing is changed. With `tries`, as `place_by_displacing` takes them, others are displaced for a slice
    that fits nowhere.
    """
    fleet, mark = draft.fleet, draft.log_position
    pieces = slices_largest_first(fleet, [gpu])
    if any(piece.cost is None for piece in pieces):
        return False
    for piece in pieces:
        draft.remove(piece.allocation)
    # The GPU is empty now, and empty GPUs are not used: nothing returns to it.
    if all(draft.place_cheapest(piece) or (tries and place_by_displacing(draft, piece, tries)) for piece in pieces):
        return True
    draft.undo(mark)
    return False
