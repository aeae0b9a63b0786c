"""The table of observation handlers, and the choice of a handler."""

import ast
import inspect
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.provisioners.base import Observation, ObservedState
from broker.services.reconciler import observation_outcomes
from broker.services.reconciler.observation_kinds import ObservationKind, classify_observation
from tests.simulation import NOW

S, K = LeaseState, ObservationKind
LONG_AGO = NOW - timedelta(days=1)


def lease(state: LeaseState, **values: Any) -> Lease:
    """Return an unsaved lease that cannot load anything."""
    recently = NOW - timedelta(seconds=1)
    return Lease(**{"id": "lse_1", "offering_id": "off_1", "state": state, "state_since": recently, "seq": 3, **values})


def leases(state: LeaseState) -> list[Lease]:
    """Return leases in a state: in time, late, and just ended."""
    times: list[dict[str, Any]] = [
        {"ends_at": NOW + timedelta(hours=1)},
        {"ends_at": LONG_AGO, "state_since": LONG_AGO, "progress": {"answered": False}},
        {"ends_at": NOW - timedelta(seconds=10)},
    ]
    return [lease(state, active_at=LONG_AGO, **each) for each in times]


def observations() -> list[Observation]:
    return [
        Observation(seen, "words", last_seen=last_seen, answered=answered, running=runs)
        for seen, last_seen, answered, runs in product(ObservedState, (None, LONG_AGO), (True, False), (True, False))
    ]


def test_each_state_and_kind_of_observation_has_a_handler() -> None:
    assert set(observation_outcomes.HANDLERS) == set(product(S, K))


def test_the_table_of_reactions_has_no_duplicate_keys() -> None:
    tree = ast.parse(inspect.getsource(observation_outcomes))
    tables = [
        node.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "REACTIONS" and node.value
    ]
    (named,) = (each for each in tables if isinstance(each, ast.Dict))
    keys = [ast.unparse(key) for key in named.keys if key]
    assert len(keys) == len(set(keys)) == len(observation_outcomes.REACTIONS)


def test_every_handler_takes_a_lease_an_observation_and_a_time() -> None:
    for handler in set(observation_outcomes.HANDLERS.values()):
        assert inspect.isfunction(handler)
        assert [name.lstrip("_") for name in inspect.signature(handler).parameters] == ["lease", "observation", "now"]


@pytest.mark.parametrize("state", list(S))
def test_choosing_a_handler_runs_no_sql_and_changes_nothing(state: LeaseState) -> None:
    """No database is allowed here, so any query fails."""
    for each, observation in product(leases(state), observations()):
        before = {name: value for name, value in vars(each).items() if name != "_state"}
        assert callable(observation_outcomes.choose_handler(each, observation, NOW))
        assert {name: value for name, value in vars(each).items() if name != "_state"} == before


def test_every_kind_of_observation_can_occur() -> None:
    found = {classify_observation(each, what, NOW) for state in S for each in leases(state) for what in observations()}
    assert found == set(K)


def test_every_reaction_is_reachable_in_its_state() -> None:
    found = {
        (state, classify_observation(each, what, NOW))
        for state in S
        for each in leases(state)
        for what in observations()
    }
    assert set(observation_outcomes.REACTIONS) <= found


@pytest.mark.parametrize("state", [S.REQUESTED, S.QUEUED, S.STOPPED, S.RELEASED, S.FAILED])
def test_states_without_cluster_objects_only_schedule_a_check(state: LeaseState) -> None:
    handlers = {observation_outcomes.HANDLERS[state, kind] for kind in K}
    assert handlers == {observation_outcomes.schedule_check}


def test_a_missing_response_takes_precedence_over_an_end_or_a_timeout() -> None:
    late = lease(S.PROVISIONING, state_since=LONG_AGO, progress={"answered": False})
    for seen in (ObservedState.PENDING, ObservedState.ENDED, ObservedState.GONE):
        assert classify_observation(late, Observation(seen, answered=False), NOW) is K.UNANSWERED
        assert classify_observation(late, Observation(seen), NOW) is (
            K.ENDED if seen is ObservedState.ENDED else K.OVERDUE
        )


def test_a_program_end_before_the_expiry_is_classified_as_ended() -> None:
    over = lease(S.ACTIVE, active_at=LONG_AGO, ends_at=NOW)
    assert (
        classify_observation(over, Observation(ObservedState.ENDED, last_seen=NOW - timedelta(seconds=1)), NOW)
        is K.ENDED
    )
    assert classify_observation(over, Observation(ObservedState.ENDED, last_seen=NOW), NOW) is K.OVERDUE
    assert classify_observation(over, Observation(ObservedState.PENDING), NOW) is K.NOT_RUNNING
    assert classify_observation(over, Observation(ObservedState.PENDING, running=True), NOW) is K.OVERDUE
