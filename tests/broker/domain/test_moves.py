"""Plans and moves always come to an end, and only from states in which they can."""

from collections.abc import Mapping
from enum import StrEnum

import pytest

from broker.domain.moves import (
    AT_WORK,
    BEGUN,
    CANCELLABLE,
    MOVE_OVER,
    NEXT_OF_MOVE,
    NEXT_OF_PLAN,
    PLAN_OVER,
    PROMISED,
    MoveState,
    PlanState,
    end_of,
)

M, P = MoveState, PlanState


def reached(following: Mapping[StrEnum, frozenset[StrEnum]], state: StrEnum) -> set[StrEnum]:
    found, new = {state}, [state]
    while new:
        for after in following[new.pop()] - found:
            found.add(after)
            new.append(after)
    return found


@pytest.mark.parametrize("following", [NEXT_OF_PLAN, NEXT_OF_MOVE])
def test_every_state_leads_to_an_end(following: Mapping[StrEnum, frozenset[StrEnum]]) -> None:
    over = {state for state, after in following.items() if not after}
    assert all(reached(following, state) & over for state in following)


def test_what_begins_is_promised_before() -> None:
    assert {state for state, after in NEXT_OF_MOVE.items() if M.MOVING in after} == {M.NOTICED}
    assert BEGUN < PROMISED
    assert not PROMISED & MOVE_OVER


def test_only_what_a_worker_has_in_hand_is_called_off() -> None:
    assert CANCELLABLE < AT_WORK
    assert all(P.CANCELLING in NEXT_OF_PLAN[state] for state in CANCELLABLE)
    assert not AT_WORK & PLAN_OVER


@pytest.mark.parametrize(
    ("moves", "cancelled", "ended"),
    [
        ([M.DONE, M.UNDONE], False, P.DONE),
        ([M.UNDONE, M.FAILED], False, P.FAILED),
        ([M.DONE, M.UNDONE], True, P.CANCELLED),
    ],
)
def test_a_plan_ended_as_its_moves_did(moves: list[MoveState], cancelled: bool, ended: PlanState) -> None:
    assert end_of(moves, cancelled=cancelled) is ended
