"""Place a slice by displacing others, which find room elsewhere."""

from collections.abc import Callable, Sequence
from itertools import groupby, islice

from broker.domain.defragmentation.fleet import LiveSlice
from broker.domain.defragmentation.gpu_shapes import SliceEviction
from broker.domain.defragmentation.relocation_draft import RelocationDraft

DISPLACEMENT_TRIES = (2, 1)  # more tries bring more relocations, and hardly one more lease


def place_by_displacing(
    draft: RelocationDraft,
    wanted: LiveSlice,
    tries: Sequence[int] = DISPLACEMENT_TRIES,
    may_relocate: Callable[[list[LiveSlice]], bool] | None = None,
) -> bool:
    """Place a slice by relocating a few others; False, changing nothing, if impossible.

    `tries` says how many ways to try that relocate one slice, two, and so on: those with least compute
    first, from the fullest GPU on. Of the ways that work with fewest slices the one is taken that loses
    least of what could still be sold. `may_relocate` refuses slices that must not be relocated.
    """
    fleet, mark = draft.fleet, draft.log_position
    evictions = fleet.shapes.cheapest_evictions(wanted.profile, len(tries))
    for count, same_size in groupby(evictions, key=lambda candidate: candidate[0].slices):
        best: tuple[float, int, SliceEviction] | None = None
        for eviction, gpu in islice(same_size, tries[count - 1]):
            if (
                may_relocate is None or may_relocate([fleet.slices[gpu][start] for start in eviction.starts])
            ) and _displace_slices(draft, wanted, gpu, eviction):
                candidate = (draft.lost_value, gpu, eviction)
                best = candidate if best is None else min(best, candidate)
                draft.undo(mark)
        if best:
            return _displace_slices(draft, wanted, best[1], best[2])
    return False


def _displace_slices(draft: RelocationDraft, wanted: LiveSlice, gpu: int, eviction: SliceEviction) -> bool:
    fleet, mark = draft.fleet, draft.log_position
    pieces = [draft.remove(fleet.slices[gpu][start].allocation) for start in eviction.starts]
    draft.place_on(wanted.with_start(fleet.ranks.best_option[wanted.profile][fleet.buckets.state_of[gpu]].start), gpu)
    pieces.sort(key=lambda piece: -fleet.table.profiles[piece.profile].memory)
    if all(draft.place_cheapest(piece) for piece in pieces):
        return True
    draft.undo(mark)
    return False
