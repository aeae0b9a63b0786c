"""The state machine of a lease."""

from itertools import pairwise

import pytest

from broker.domain.lifecycle.lease_transitions import (
    BILLABLE_STATES,
    ENDING_STATES,
    HOLDS_CAPACITY,
    NEXT_STATES,
    SETTLED_STATES,
)
from broker.domain.lifecycle.states import LeaseState as S


def reachable(start: S) -> set[S]:
    seen, todo = {start}, [start]
    while todo:
        for state in NEXT_STATES[todo.pop()] - seen:
            seen.add(state)
            todo.append(state)
    return seen


@pytest.mark.parametrize("state", S)
def test_every_state_reaches_released(state: S) -> None:
    assert S.RELEASED in reachable(state)


@pytest.mark.parametrize("state", S)
def test_every_state_is_reached_from_requested(state: S) -> None:
    assert state in reachable(S.REQUESTED)


def test_no_transition_leaves_released() -> None:
    assert NEXT_STATES[S.RELEASED] == frozenset()


@pytest.mark.parametrize("state", sorted(set(S) - {S.RELEASED, S.RELEASING}))
def test_a_lease_can_start_releasing_from_every_state(state: S) -> None:
    assert S.RELEASING in NEXT_STATES[state]


def test_only_the_active_state_can_follow_itself() -> None:
    assert {state for state in S if state in NEXT_STATES[state]} == {S.ACTIVE}


def test_a_lease_is_active_only_after_it_was_provisioned() -> None:
    assert {state for state in S if S.ACTIVE in NEXT_STATES[state]} == {S.PROVISIONING, S.ACTIVE}


def test_a_lease_is_queued_only_before_activation_or_after_a_stop() -> None:
    assert {state for state in S if S.QUEUED in NEXT_STATES[state]} == {
        S.REQUESTED,
        S.STOPPED,
        S.PROVISIONING,
    }


def test_billable_states_hold_capacity() -> None:
    assert {S.ACTIVE} == BILLABLE_STATES
    assert BILLABLE_STATES < HOLDS_CAPACITY


def test_capacity_is_held_from_provisioning_until_release_stop_or_requeue() -> None:
    taken = {(a, b) for a in S for b in NEXT_STATES[a] if a not in HOLDS_CAPACITY and b in HOLDS_CAPACITY}
    given = {(a, b) for a in S for b in NEXT_STATES[a] if a in HOLDS_CAPACITY and b not in HOLDS_CAPACITY}
    ends = {(a, S.RELEASING) for a in (S.REQUESTED, S.QUEUED, S.STOPPED)}  # they pass through empty-handed
    assert taken - ends == {(S.QUEUED, S.PROVISIONING)}
    assert given == {(S.PROVISIONING, S.QUEUED), (S.STOPPING, S.STOPPED), (S.RELEASING, S.RELEASED)}


def test_ending_states_lead_only_to_release_or_failure() -> None:
    assert {state for state in S if NEXT_STATES[state] <= {S.RELEASING, S.RELEASED, S.FAILED}} == ENDING_STATES


def test_settled_states_exclude_all_transitional_states() -> None:
    assert set(S) - SETTLED_STATES == {S.REQUESTED, S.QUEUED, S.PROVISIONING, S.STOPPING, S.RELEASING}


def test_the_life_of_a_lease_that_is_stopped_resumed_and_lost_is_legal() -> None:
    life = [
        S.REQUESTED, S.QUEUED, S.PROVISIONING, S.QUEUED, S.PROVISIONING, S.ACTIVE, S.ACTIVE, S.STOPPING,
        S.STOPPED, S.QUEUED, S.PROVISIONING, S.ACTIVE, S.RELEASING, S.FAILED, S.RELEASING, S.RELEASED,
    ]  # fmt: skip
    assert all(after in NEXT_STATES[before] for before, after in pairwise(life))
