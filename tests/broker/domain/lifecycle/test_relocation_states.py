"""State machines of relocation plans and relocations."""

from collections.abc import Mapping
from enum import StrEnum

import pytest

from broker.domain.lifecycle.relocation_states import (
    CANCELLABLE_PLAN_STATES,
    FINAL_PLAN_STATES,
    FINAL_RELOCATION_STATES,
    NEXT_PLAN_STATES,
    NEXT_RELOCATION_STATES,
    PENDING_RELOCATION_STATES,
    STARTED_RELOCATION_STATES,
    WORKING_PLAN_STATES,
    RelocationPlanState,
    RelocationState,
    final_plan_state,
)

M, P = RelocationState, RelocationPlanState


def reached(following: Mapping[StrEnum, frozenset[StrEnum]], state: StrEnum) -> set[StrEnum]:
    found, new = {state}, [state]
    while new:
        for after in following[new.pop()] - found:
            found.add(after)
            new.append(after)
    return found


@pytest.mark.parametrize("following", [NEXT_PLAN_STATES, NEXT_RELOCATION_STATES])
def test_every_state_leads_to_an_end(following: Mapping[StrEnum, frozenset[StrEnum]]) -> None:
    over = {state for state, after in following.items() if not after}
    assert all(reached(following, state) & over for state in following)


def test_a_relocation_starts_only_after_its_notice() -> None:
    assert {state for state, after in NEXT_RELOCATION_STATES.items() if M.MOVING in after} == {M.NOTICED}
    assert STARTED_RELOCATION_STATES < PENDING_RELOCATION_STATES
    assert not PENDING_RELOCATION_STATES & FINAL_RELOCATION_STATES


def test_cancellable_plan_states_are_working_states() -> None:
    assert CANCELLABLE_PLAN_STATES < WORKING_PLAN_STATES
    assert all(P.CANCELLING in NEXT_PLAN_STATES[state] for state in CANCELLABLE_PLAN_STATES)
    assert not WORKING_PLAN_STATES & FINAL_PLAN_STATES


@pytest.mark.parametrize(
    ("moves", "cancelled", "ended"),
    [
        ([M.DONE, M.UNDONE], False, P.DONE),
        ([M.UNDONE, M.FAILED], False, P.FAILED),
        ([M.DONE, M.UNDONE], True, P.CANCELLED),
    ],
)
def test_the_final_plan_state_follows_from_its_relocations(
    moves: list[RelocationState], cancelled: bool, ended: RelocationPlanState
) -> None:
    assert final_plan_state(moves, cancelled=cancelled) is ended
