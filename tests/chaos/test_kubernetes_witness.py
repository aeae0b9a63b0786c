"""The long run's witness: from when to when a lease had a pod that ran, by what the cluster itself says of it."""

from datetime import UTC, datetime
from typing import Any

from tests.chaos.kubernetes_checks import Witness

LEASE, BEGAN, ENDED = "lse_1", "2026-11-21T10:00:00Z", "2026-11-21T10:05:00Z"


def pod(uid: str, phase: str = "Running", **state: Any) -> dict[str, Any]:
    meta = {"uid": uid, "labels": {"gpubroker.dev/lease": LEASE}}
    return {"metadata": meta, "status": {"phase": phase, "containerStatuses": [{"state": state}]}}


def running(uid: str) -> dict[str, Any]:
    return pod(uid, running={"startedAt": BEGAN})


def witness() -> Witness:
    return Witness(api=None)  # type: ignore[arg-type]  # it is told by hand


def test_a_pod_ran_from_its_start_to_its_end_by_the_clusters_clock() -> None:
    seen = witness()
    seen._see(running("a"))
    assert seen.since[LEASE] == datetime.fromisoformat(BEGAN)
    seen._see(pod("a", "Succeeded", terminated={"startedAt": BEGAN, "finishedAt": ENDED}))
    assert seen.ran_until(LEASE) == datetime.fromisoformat(ENDED)


def test_what_runs_ran_until_now_and_what_was_never_seen_accuses_nobody() -> None:
    seen, before = witness(), datetime.now(UTC)
    seen._see(running("a"))
    assert seen.ran_until(LEASE) >= before
    assert seen.ran_until("lse_2") >= before


def test_two_pods_at_once_are_told_and_two_in_turn_are_not() -> None:
    seen = witness()
    seen._see(running("a"))
    seen._forget(running("a"))
    seen._see(running("b"))
    assert not seen.twice
    seen._see(running("a"))
    assert seen.twice == {LEASE}


def test_what_an_older_state_does_not_know_ended_when_that_was_seen() -> None:
    seen = witness()
    seen._see(running("a"))
    before = datetime.now(UTC)
    seen._forget_all_but([])
    after = datetime.now(UTC)
    assert before <= seen.ran_until(LEASE) <= after
    assert not seen.running[LEASE]
