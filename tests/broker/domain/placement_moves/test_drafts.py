from broker.domain.placement.moving import Draft, Step
from tests.broker.domain.placement_moves.cards import P1, P2, drawn, fleet


def test_a_draft_names_what_lies_elsewhere_and_nothing_else() -> None:
    cards = fleet("1@0 2@2", "3@0")
    draft = Draft(cards)
    one, two = draft.lift("0.0"), draft.lift("0.2")
    draft.put(two, 0)
    draft.put(one._replace(start=4), 1)
    assert draft.moved() == [Step("0.0", P1, 0, 0, 1, 4, cost=1)]


def test_a_draft_undone_leaves_the_fleet_as_it_was() -> None:
    cards = fleet("1@0 2@2", "3@0", "")
    draft = Draft(cards)
    for allocation in ("0.0", "0.2", "1.0"):
        assert draft.place(draft.lift(allocation), opening=True)
    assert drawn(cards) != ["1@0 2@2", "3@0", ""]
    draft.undo()
    assert drawn(cards) == ["1@0 2@2", "3@0", ""]


def test_a_slice_that_finds_no_room_stays_in_the_hand() -> None:
    cards = fleet("2@0", "7@0")
    draft = Draft(cards)
    piece = draft.lift("0.0")
    assert piece.profile == P2
    assert not draft.place(piece)
    draft.undo()
    assert drawn(cards) == ["2@0", "7@0"]
