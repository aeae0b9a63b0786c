"""Make room for a gang: place its slices in sequence and relocate others."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from broker.domain.defragmentation.displacement import DISPLACEMENT_TRIES, place_by_displacing
from broker.domain.defragmentation.fleet import LiveSlice, SliceFleet
from broker.domain.defragmentation.relocation_budget import RelocationBudget
from broker.domain.defragmentation.relocation_draft import RelocationDraft, SliceRelocation
from broker.domain.defragmentation.relocation_order import order_relocations
from broker.domain.geometry.profiles import Placement
from broker.domain.placement.costs.state_tables import EMPTY, NO_STATE, StateTable

MAX_NODES = 16  # nodes tried, in the order of displaced slices


@dataclass(frozen=True, slots=True)
class GangPlacement:
    """The slot of each gang member, and the relocations needed first."""

    slots: tuple[tuple[int, int], ...]
    steps: tuple[SliceRelocation, ...]


def make_room_for_gang(
    fleet: SliceFleet,
    gang: Sequence[LiveSlice],
    *,
    same_node: bool,
    tries: Sequence[int] = DISPLACEMENT_TRIES,
    gain: int | None = None,
    budget: RelocationBudget | None = None,
) -> GangPlacement | None:
    """Place a gang's slices, on one node or anywhere, by relocating others.

    Changes nothing and returns None if that is impossible. `tries` says how hard to search where the
    node does not matter, as `place_by_displacing` takes it. Relocations that together cost more than the gain, or
    than the budget allows, are not made.
    """
    gpu_sets = _nodes_by_cost(fleet, gang) if same_node else [None]
    for gpus in gpu_sets:
        draft = RelocationDraft(fleet)
        if _place_anywhere(draft, gang, tries) if gpus is None else _place_on_gpus(draft, gang, gpus):
            steps = order_relocations(
                fleet.table, draft.relocations(), min(fleet.buckets.gpus_by_state[EMPTY], default=None)
            )
            if steps is not None and _spend_if_worth(fleet, steps, gain, budget):
                if steps:
                    steps[-1] = replace(steps[-1], gain=gain or 0)
                slots = tuple((fleet.gpu_of[each.allocation], fleet.start_of[each.allocation]) for each in gang)
                return GangPlacement(slots, tuple(steps))
        draft.undo()
    return None


def _spend_if_worth(
    fleet: SliceFleet, steps: Sequence[SliceRelocation], gain: int | None, budget: RelocationBudget | None
) -> bool:
    """Tell whether these relocations may be made; if so charge the budget."""
    # A slice relocated by way of a spare GPU is interrupted twice, and counts twice.
    pieces = [fleet.slices[fleet.gpu_of[step.allocation]][fleet.start_of[step.allocation]] for step in steps]
    if gain is not None and sum(step.cost for step in steps) > gain:
        return False
    if budget is None:
        return True
    if not budget.affords(pieces):
        return False
    budget.spend(pieces)
    return True


def _place_anywhere(draft: RelocationDraft, gang: Sequence[LiveSlice], tries: Sequence[int]) -> bool:
    return all(
        draft.place_cheapest(each, use_empty_gpus=True) or place_by_displacing(draft, each, tries) for each in gang
    )


def _place_on_gpus(draft: RelocationDraft, gang: Sequence[LiveSlice], gpus: Sequence[int]) -> bool:
    """Place them on some GPUs; displaced slices go anywhere, to empty GPUs last."""
    displaced = _put_on_gpus(draft, gang, gpus) or []  # they do fit: the nodes were chosen by trying
    displaced.sort(key=lambda piece: -draft.fleet.table.profiles[piece.profile].memory)
    return all(draft.place_cheapest(piece) or draft.place_cheapest(piece, use_empty_gpus=True) for piece in displaced)


def _put_on_gpus(draft: RelocationDraft, gang: Sequence[LiveSlice], gpus: Sequence[int]) -> list[LiveSlice] | None:
    """Place them on some GPUs where fewest slices are displaced.

    Returns the displaced slices; None where they do not fit.
    """
    displaced: list[LiveSlice] = []
    for each in gang:
        slot = min((slot for gpu in gpus for slot in _candidate_slots(draft.fleet, each, gpu)), default=None)
        if slot is None:
            return None
        _, _, _, gpu, start, starts = slot
        displaced += [draft.remove(draft.fleet.slices[gpu][at].allocation) for at in starts]
        draft.place_on(each.with_start(start), gpu)
    return displaced


CandidateSlot = tuple[int, int, bool, int, int, tuple[int, ...]]


def _candidate_slots(fleet: SliceFleet, wanted: LiveSlice, gpu: int) -> Iterable[CandidateSlot]:
    """Yield the possible slots of a GPU for a slice.

    Each has the number and the cost of displaced slices, whether it opens the GPU, and where it is.
    """
    table, slices = fleet.table, fleet.slices[gpu]
    if fleet.buckets.state_of[gpu] == NO_STATE:
        return
    for place in table.profiles[wanted.profile].placements:
        displaced = [piece for piece in slices.values() if _conflicts(table, piece, wanted, place)]
        if all(piece.cost is not None and table.profiles[piece.profile].memory < table.grid for piece in displaced):
            cost = sum(piece.cost or 0 for piece in displaced)
            yield len(displaced), cost, not slices, gpu, place.start, tuple(piece.start for piece in displaced)


def _conflicts(table: StateTable, piece: LiveSlice, wanted: LiveSlice, place: Placement) -> bool:
    profile, other = table.profiles[wanted.profile], table.profiles[piece.profile]
    overlap = piece.start < place.end and place.start < piece.start + other.memory
    return overlap or (profile.media and other.media) or profile.isolation is not other.isolation


def _nodes_by_cost(fleet: SliceFleet, gang: Sequence[LiveSlice]) -> list[list[int]]:
    """Return the GPUs of each feasible node, those with fewest displaced slices first."""
    gpus_by_node: dict[int, list[int]] = {}
    for gpu, node in enumerate(fleet.buckets.node_of):
        gpus_by_node.setdefault(node, []).append(gpu)
    found = []
    for node, gpus in gpus_by_node.items():
        draft = RelocationDraft(fleet)
        displaced = _put_on_gpus(draft, gang, gpus)
        draft.undo()
        if displaced is not None:
            found.append((len(displaced), sum(piece.cost or 0 for piece in displaced), node))
    return [gpus_by_node[node] for _, _, node in islice(sorted(found), MAX_NODES)]
