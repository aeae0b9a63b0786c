"""Exchange slices that waste room, so that more can be sold on the GPUs.

A 1g in the last slot of an eight-unit GPU leaves a unit that nothing else can use; a 1g of double
memory in its place leaves none.
"""

from collections import deque
from collections.abc import Sequence

from broker.domain.defragmentation.fleet import LiveSlice, SliceFleet
from broker.domain.defragmentation.relocation_draft import RelocationDraft
from broker.domain.placement.costs.state_tables import EMPTY


def exchange_wasteful_slices(draft: RelocationDraft, sources: Sequence[int]) -> None:
    """Exchange wasteful slices for slices of the source GPUs.

    The first sources are the ones to be emptied.
    """
    fleet = draft.fleet
    # By profile, the slices that may come from the sources; relocated ones are skipped.
    coming: list[deque[tuple[int, LiveSlice]]] = [deque() for _ in fleet.table.profiles]
    for gpu in sources:
        for _, piece in sorted(fleet.slices[gpu].items()):
            coming[piece.profile].append((gpu, piece))
    last = set(sources)
    for gpu in [*(gpu for gpu in range(len(fleet.slices)) if gpu not in last), *reversed(sources)]:
        if _wastes_room(fleet, gpu):
            for piece in sorted(
                fleet.slices[gpu].values(), key=lambda piece: fleet.table.profiles[piece.profile].memory
            ):
                if piece.cost is not None and _exchange_slice(draft, gpu, piece, coming):
                    break


def _exchange_slice(
    draft: RelocationDraft, gpu: int, piece: LiveSlice, coming: Sequence[deque[tuple[int, LiveSlice]]]
) -> bool:
    """Replace a slice by another if more can be sold then; else change nothing."""
    fleet, mark, before = draft.fleet, draft.log_position, draft.lost_value
    draft.remove(piece.allocation)
    lifted, state = draft.log_position, fleet.buckets.state_of[gpu]
    for profile in reversed(range(len(coming))):
        if fleet.prices[profile] <= fleet.prices[piece.profile] or not fleet.ranks.fits(profile, state):
            continue
        queue = coming[profile]
        while queue and (fleet.slices[queue[0][0]].get(queue[0][1].start) != queue[0][1] or queue[0][0] == gpu):
            queue.popleft()
        if queue:
            draft.remove(queue[0][1].allocation)
            draft.place_on(queue[0][1].with_start(fleet.ranks.best_option[profile][state].start), gpu)
            if draft.place_cheapest(piece) and draft.lost_value < before:
                queue.popleft()
                return True
            draft.undo(lifted)
    draft.undo(mark)
    return False


def _wastes_room(fleet: SliceFleet, gpu: int) -> bool:
    """Tell whether a GPU's slices and best additions have less value than an empty GPU."""
    value = sum(fleet.prices[piece.profile] for piece in fleet.slices[gpu].values())
    return (
        bool(fleet.slices[gpu])
        and value + fleet.remaining_value[fleet.buckets.state_of[gpu]] < fleet.remaining_value[EMPTY]
    )
