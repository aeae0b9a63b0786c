"""Drafts of relocations, which can be undone."""

from broker.domain.defragmentation.relocation_draft import RelocationDraft, SliceRelocation
from tests.broker.domain.defragmentation.gpus import P1, P2, draw, fleet


def test_a_draft_lists_only_slices_with_a_new_placement() -> None:
    gpus = fleet("1@0 2@2", "3@0")
    draft = RelocationDraft(gpus)
    one, two = draft.remove("0.0"), draft.remove("0.2")
    draft.place_on(two, 0)
    draft.place_on(one._replace(start=4), 1)
    assert draft.relocations() == [SliceRelocation("0.0", P1, 0, 0, 1, 4, cost=1)]


def test_undoing_a_draft_restores_the_fleet() -> None:
    gpus = fleet("1@0 2@2", "3@0", "")
    draft = RelocationDraft(gpus)
    for allocation in ("0.0", "0.2", "1.0"):
        assert draft.place_cheapest(draft.remove(allocation), use_empty_gpus=True)
    assert draw(gpus) != ["1@0 2@2", "3@0", ""]
    draft.undo()
    assert draw(gpus) == ["1@0 2@2", "3@0", ""]


def test_a_slice_without_a_free_slot_is_not_placed() -> None:
    gpus = fleet("2@0", "7@0")
    draft = RelocationDraft(gpus)
    piece = draft.remove("0.0")
    assert piece.profile == P2
    assert not draft.place_cheapest(piece)
    draft.undo()
    assert draw(gpus) == ["2@0", "7@0"]


def test_a_draft_can_be_undone_back_to_a_mark() -> None:
    gpus = fleet("1@0 2@2", "3@0", "")
    draft = RelocationDraft(gpus)
    draft.place_on(draft.remove("0.0")._replace(start=4), 1)
    mark = draft.log_position
    draft.place_on(draft.remove("0.2")._replace(start=0), 2)
    draft.undo(mark)
    assert draw(gpus) == ["2@2", "3@0 1@4", ""]
    assert [step.allocation for step in draft.relocations()] == ["0.0"]
    assert draft.placed_since(mark) == []


def test_a_draft_tracks_the_lost_sellable_value() -> None:
    gpus = fleet("1@6", "4@0", "")
    draft = RelocationDraft(gpus)
    one = draft.remove("0.6")
    assert draft.lost_value == -2  # the last unit of a GPU can only be sold together with its neighbour
    draft.place_on(one.with_start(0), 0)
    assert draft.lost_value == -1
    draft.undo()
    assert draft.lost_value == 0
