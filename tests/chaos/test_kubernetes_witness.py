"""The long run's witness of when leases had running pods."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Allocation
from tenants.services.rls import tenant_scope
from tests.chaos.kubernetes_checks import Witness, _late, _nobody_had_seen, double_allocations, let_go_too_late
from tests.chaos.kubernetes_spans import Life
from tests.chaos.kubernetes_time import Jumps
from tests.chaos.kubernetes_world import World
from tests.simulation import create_gpus, create_tenant, offering, reload_lease, simulate

LEASE, LIFE, BEGAN, ENDED = "lse_1", ("lse_1", 1), "2026-11-21T10:00:00Z", "2026-11-21T10:05:00Z"


def pod(uid: str, phase: str = "Running", *, life: Life = LIFE, **state: Any) -> dict[str, Any]:
    lease, generation = life
    marks = {"gpubroker.dev/lease": lease, "gpubroker.dev/generation": str(generation)}
    return {
        "metadata": {"uid": uid, "labels": marks, "namespace": "home"},
        "status": {"phase": phase, "containerStatuses": [{"state": state}]},
    }


def running(uid: str, *, claim: str = "", life: Life = LIFE) -> dict[str, Any]:
    volumes = [{"persistentVolumeClaim": {"claimName": claim}}] if claim else [{"emptyDir": {}}]
    return {**pod(uid, life=life, running={"startedAt": BEGAN}), "spec": {"volumes": volumes}}


def witness() -> Witness:
    return Witness(api=None)  # type: ignore[arg-type]  # it is told by hand


def test_a_pod_ran_from_its_start_to_its_end_by_the_clusters_clock() -> None:
    seen = witness()
    seen._see(running("a"))
    assert seen.since[LIFE] == datetime.fromisoformat(BEGAN)
    seen._see(pod("a", "Succeeded", terminated={"startedAt": BEGAN, "finishedAt": ENDED}))
    assert seen.ran_until(LIFE) == datetime.fromisoformat(ENDED)


def test_the_latest_reported_end_of_a_pod_counts() -> None:
    seen, later = witness(), "2026-11-21T10:05:02Z"
    seen._see(running("a"))
    for ended in (ENDED, later, ENDED):
        seen._see(pod("a", "Failed", terminated={"startedAt": BEGAN, "finishedAt": ended}))
    assert seen.ran_until(LIFE) == datetime.fromisoformat(later)


def test_a_pod_in_restart_back_off_has_not_ended() -> None:
    seen = witness()
    seen._see(running("a"))
    seen._see(pod("a", waiting={"reason": "CrashLoopBackOff"}))
    before = datetime.now(UTC)
    assert seen.ran_until(LIFE) >= before
    seen._see(running("a"))
    seen._see(pod("a", waiting={"reason": "CrashLoopBackOff"}))
    seen._forget("a")
    assert before <= seen.ran_until(LIFE) <= datetime.now(UTC)
    assert not seen.resting


def test_a_running_or_unseen_pod_counts_as_running_until_now() -> None:
    seen, before = witness(), datetime.now(UTC)
    seen._see(running("a"))
    assert seen.ran_until(LIFE) >= before
    assert seen.ran_until(("lse_2", 1)) >= before


def test_only_concurrent_pods_of_a_lease_are_reported() -> None:
    seen = witness()
    seen._see(running("a"))
    seen._forget("a")
    seen._see(running("b"))
    assert not seen.twice
    seen._see(running("a"))
    assert seen.twice == {LEASE}


def test_a_pod_missing_from_a_list_ended_when_that_was_observed() -> None:
    seen = witness()
    seen._see(running("a"))
    before = datetime.now(UTC)
    seen._forget_all_but([])
    after = datetime.now(UTC)
    assert before <= seen.ran_until(LIFE) <= after
    assert not seen.lives()


def test_a_restarted_lease_runs_from_the_start_of_its_new_pod() -> None:
    seen, again = witness(), (LEASE, 2)
    seen._see(running("a"))
    seen._see(pod("a", "Failed", terminated={"startedAt": BEGAN, "finishedAt": ENDED}))
    later = running("b", life=again)
    later["status"]["containerStatuses"][0]["state"]["running"]["startedAt"] = "2026-11-21T11:00:00Z"
    seen._see(later)
    assert seen.since[again] - seen.since[LIFE] == timedelta(hours=1)
    assert seen.ran_until(LIFE) == datetime.fromisoformat(ENDED)
    assert seen.lives() == {again}
    assert not seen.twice
    seen._see(running("a"))
    assert seen.twice == {LEASE}


def test_concurrent_but_not_sequential_mounts_of_a_volume_are_reported() -> None:
    seen = witness()
    seen._see(running("a", claim="v-1"))
    seen._see(running("b", claim="v-2", life=("lse_2", 1)))
    seen._forget("a")
    seen._see(running("c", claim="v-1", life=("lse_3", 1)))
    assert not seen.written_twice
    seen._see(running("d", claim="v-1", life=("lse_4", 1)))
    assert seen.written_twice == {"home/v-1"}
    assert not seen.twice


def held(seen: Witness) -> list[tuple[str, float]]:
    """Return on which node each pod held its slice, and for how long."""
    return [(each.node, each.when.until - each.when.since) for each in seen.all_held()]


def test_a_pod_holds_its_slice_across_restarts_until_it_ends() -> None:
    seen, crashed = witness(), {"startedAt": BEGAN, "finishedAt": "2026-11-21T10:00:03Z"}
    first = running("a")
    first["spec"]["nodeName"] = "n1"
    seen._see(first)
    waits = pod("a", waiting={"reason": "CrashLoopBackOff"})
    waits["status"]["containerStatuses"][0]["lastState"] = {"terminated": crashed}
    seen._see(waits)
    assert not seen.lives()
    assert [each.node for each in seen.all_held()] == ["n1"]
    seen._see(pod("a", "Failed", terminated={"startedAt": BEGAN, "finishedAt": ENDED}))
    assert held(seen) == [("n1", 300)]
    seen._see(pod("a", "Failed", terminated={"startedAt": BEGAN, "finishedAt": ENDED}))
    assert held(seen) == [("n1", 300)]


def test_a_pod_that_began_and_ended_unobserved_counts_as_holding() -> None:
    seen = witness()
    seen._see(pod("a", "Succeeded", terminated={"startedAt": BEGAN, "finishedAt": ENDED}))
    assert held(seen) == [("", 300)]
    seen._see(pod("b", "Pending", waiting={"reason": "ContainerCreating"}))
    assert held(seen) == [("", 300)]


def test_a_pod_that_reappears_held_nothing_in_between() -> None:
    seen = witness()
    seen._see(running("a"))
    seen._forget_all_but([])
    before = datetime.now(UTC).timestamp()
    seen._see(running("a"))
    first, again = seen.all_held()
    assert first.when.until <= before <= again.when.since


@dataclass
class Still:
    """A world without clock jumps."""

    jumps: Jumps = field(default_factory=Jumps)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("reason", "seconds", "whose"),
    [
        (EndReason.BY_TENANT, 60, [0, 60]),
        (EndReason.BY_TENANT, 600, [1, 0]),
        (EndReason.BY_OPERATOR, 60, [1, 0]),
    ],
)
def test_charges_after_a_pods_end_are_grouped_by_end_reason(reason: EndReason, seconds: int, whose: list[int]) -> None:
    seen, world = witness(), cast(World, Still())
    with simulate() as life:
        create_gpus(1)
        lease = life.create_lease(create_tenant("Kestrel"), offering())
        brief = life.create_lease(create_tenant("Merlin"), offering())
        for each in (lease, brief):
            seen.until[each.pk, each.generation] = life.now.replace(microsecond=0) - timedelta(hours=1)
        life.release_lease(brief, reason)  # it was active for no second
        assert [step.lease_id for step, _ in _late(world, seen)] == []
        since = reload_lease(lease).active_at
        assert since
        life.clock.at = since + timedelta(seconds=seconds)
        life.release_lease(lease, reason)
        late = [step for step, by in _late(world, seen) if not _nobody_had_seen(step, by)]
        assert [len(late), let_go_too_late(world, seen)] == whose


@pytest.mark.django_db
def test_only_concurrent_allocations_of_a_slot_are_counted() -> None:
    with simulate() as life:
        create_gpus(1)
        owner, what = create_tenant("Kestrel"), offering("whole-gpu")
        first = life.create_lease(owner, what, LeaseState.RELEASED)
        life.create_lease(owner, what)
        assert double_allocations() == 0
        with tenant_scope(first.tenant_id):
            Allocation.objects.filter(lease=first).update(released_at=life.now + timedelta(hours=1))
        assert double_allocations() == 1
