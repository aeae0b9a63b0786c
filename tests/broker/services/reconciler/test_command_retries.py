"""Retries of batch commands, with back-off and without charges while waiting."""

from datetime import timedelta

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Allocation, Lease, LeaseAttempt, NodeState
from broker.provisioners.base import Observation, ObservedState
from broker.services.leases import attempt_records
from broker.services.leases.lifecycle import command_retries, termination
from broker.services.leases.provision_specs import load_provision_spec
from broker.services.reconciler import lease_reconciler, observation_outcomes
from tenants.models import QuotaKind
from tenants.services.errors import InvalidValue
from tenants.services.rls import tenant_scope
from tests.simulation import (
    Simulation,
    TenantContext,
    create_gpus,
    create_tenant,
    node_of,
    offering,
    reload_lease,
    set_node_state,
    state_path,
    transitions_of,
)

pytestmark = pytest.mark.django_db
FAILS = {"workload": "batch", "image": "fails/train", "command": "train"}  # ten seconds after its start
LASTS = {"workload": "batch", "image": "train", "command": "train"}


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(1)
    return create_tenant("Kestrel")


def watch(sim: Simulation, seconds: int) -> None:
    """Let time pass with active leases observed every five seconds, as an agent does."""
    for _ in range(seconds // 5):
        sim.run(5)
        lease_reconciler.check_active_leases(now=sim.now)
        sim.sweep()


def attempts(lease: Lease) -> list[LeaseAttempt]:
    with tenant_scope(lease.tenant_id):
        return list(attempt_records.attempts_of(lease))


def waits_s(lease: Lease) -> list[float]:
    """Return how long each ended run was followed by a wait."""
    found = [(each.retry_at - each.ended_at).total_seconds() for each in attempts(lease) if each.retry_at]
    return [int(seconds) for seconds in found]


def test_a_failed_command_is_run_again_after_growing_waits(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), retries=3, **FAILS)
    watch(sim, 600)
    ended = reload_lease(lease)
    assert (ended.state, ended.end_reason, ended.attempt) == (LeaseState.RELEASED, "by_tenant", 4)
    runs = attempts(lease)
    assert [(each.number, each.exit_code, each.counted) for each in runs] == [(n, 1, True) for n in (1, 2, 3, 4)]
    assert waits_s(lease) == [30, 60, 120]
    assert runs[-1].retry_at is None
    causes = [step.cause for step in transitions_of(lease)]
    assert f"run 1 of 4: its command failed: exit code 1; run again at {runs[0].retry_at:%H:%M:%S} UTC" in causes


def test_nothing_is_held_and_charged_between_runs(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), retries=1, **FAILS)
    watch(sim, 25)
    waiting = reload_lease(lease)
    assert (waiting.state, waiting.ends_at, waiting.attempt) == (LeaseState.QUEUED, None, 2)
    assert waiting.pending_reason.startswith("Run 2 of 2 starts at ")
    with tenant_scope(kestrel.tenant.pk):
        assert not Allocation.objects.filter(lease=lease, released_at=None).exists()
    watch(sim, 120)
    assert state_path(lease).count("active") == 2
    seconds = reload_lease(lease)
    charged = sum(
        (after.at - step.at).total_seconds()
        for step, after in zip(transitions_of(lease), transitions_of(lease)[1:], strict=False)
        if step.after == "active"
    )
    assert charged == 20
    assert seconds.active_seconds == 10


def test_a_command_that_succeeds_is_not_run_again(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), retries=3, workload="batch", image="brief/train", command="train")
    watch(sim, 300)
    (run,) = attempts(lease)
    assert (reload_lease(lease).state, run.exit_code, run.retry_at) == (LeaseState.RELEASED, 0, None)


def test_without_retries_a_failed_command_ends_its_lease(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), **FAILS)
    watch(sim, 300)
    (run,) = attempts(lease)
    assert (reload_lease(lease).state, run.exit_code, run.retry_at) == (LeaseState.RELEASED, 1, None)


def test_a_run_that_takes_too_long_counts_as_failed(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), retries=1, attempt_limit_s=120, **LASTS)
    with tenant_scope(kestrel.tenant.pk):
        spec = load_provision_spec(reload_lease(lease))
    assert spec.paid_until
    assert reload_lease(lease).active_at == spec.paid_until - timedelta(seconds=180)
    watch(sim, 600)
    ended = reload_lease(lease)
    assert ended.state == LeaseState.RELEASED
    texts = {(each.text, each.exit_code) for each in attempts(lease)}
    assert texts == {("it reached its time limit of 120 s per run", None)}
    assert [(each.ended_at - each.started_at).total_seconds() for each in attempts(lease) if each.started_at] == [
        120,
        120,
    ]


def test_a_lost_run_starts_again_and_counts_as_no_try(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), retries=1, **LASTS)
    node = node_of(lease)
    set_node_state(node, NodeState.LOST, sim)
    watch(sim, 300)
    waiting = reload_lease(lease)
    assert (waiting.state, waiting.attempt) == (LeaseState.QUEUED, 1)
    set_node_state(node, NodeState.READY, sim)
    watch(sim, 120)
    assert reload_lease(lease).state == LeaseState.ACTIVE
    (run,) = attempts(lease)
    assert (run.counted, run.exit_code) == (False, None)


def test_a_lost_lease_without_retries_ends(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), **LASTS)
    set_node_state(node_of(lease), NodeState.LOST, sim)
    watch(sim, 400)
    assert reload_lease(lease).end_reason == "device_lost"


def test_no_run_begins_without_time_left(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), retries=3, max_duration_s=65, **FAILS)
    watch(sim, 300)
    assert reload_lease(lease).state == LeaseState.RELEASED
    assert len(attempts(lease)) == 1


def test_a_waiting_retry_is_cancelled_with_its_lease(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), retries=3, **FAILS)
    watch(sim, 25)
    with tenant_scope(kestrel.tenant.pk):
        termination.release_lease(reload_lease(lease), reason=termination.EndReason.BY_TENANT, now=sim.now)
    watch(sim, 300)
    assert state_path(lease).count("active") == 1
    assert kestrel.quota_used(QuotaKind.UNITS) == 0


def test_a_lease_that_its_tenant_stops_is_not_run_again(sim: Simulation, kestrel: TenantContext) -> None:
    home = sim.create_volume(kestrel)
    lease = sim.create_lease(kestrel, offering(), retries=3, volume=home.pk, **FAILS)
    sim.run(10.2)
    lease_reconciler.reconcile_lease(lease.pk, kestrel.tenant.pk, now=sim.now)
    assert reload_lease(lease).state == LeaseState.STOPPING
    sim.stop_lease(lease, kestrel)
    watch(sim, 300)
    assert reload_lease(lease).state == LeaseState.STOPPED


def test_the_run_is_told_to_the_command(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), retries=1, **LASTS)
    with tenant_scope(kestrel.tenant.pk):
        assert ("GPUBROKER_ATTEMPT", "1") in load_provision_spec(reload_lease(lease)).env


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        ({"retries": 1, "workload": "ssh"}, "retries"),
        ({"attempt_limit_s": 60}, "attempt_limit_s"),
        ({"retries": 11, "workload": "batch"}, "retries"),
        ({"attempt_limit_s": 10, "workload": "batch"}, "attempt_limit_s"),
        ({"attempt_limit_s": 7200, "workload": "batch"}, "attempt_limit_s"),
    ],
)
def test_impossible_retries_are_refused(
    sim: Simulation, kestrel: TenantContext, terms: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidValue) as refused:
        sim.request_lease(kestrel, offering(), max_duration_s=3600, **terms)
    assert refused.value.field == field


def test_a_command_that_fails_before_it_was_seen_is_run_again(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), LeaseState.PROVISIONING, retries=1, **LASTS)
    failed = Observation(ObservedState.ENDED, "its command failed: exit code 2", last_seen=sim.now)
    with tenant_scope(kestrel.tenant.pk):
        observation_outcomes.apply_observation(lease, failed, sim.now)
    waiting = reload_lease(lease)
    assert (waiting.state, waiting.attempt, waiting.active_seconds) == (LeaseState.QUEUED, 2, 0)
    watch(sim, 60)
    assert reload_lease(lease).state == LeaseState.ACTIVE
    assert [(each.exit_code, each.started_at) for each in attempts(lease)] == [(2, None)]


def test_a_lost_run_keeps_its_slice_until_its_node_answers(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), retries=1, **LASTS)
    set_node_state(node_of(lease), NodeState.LOST, sim)
    watch(sim, 300)
    with tenant_scope(kestrel.tenant.pk):
        (held,) = Allocation.objects.filter(lease=lease, released_at=None)
    assert held.leaving_since is not None


def test_too_many_lost_runs_end_the_lease(
    sim: Simulation, kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_retries, "MAX_LOSSES", 0)
    lease = sim.create_lease(kestrel, offering(), retries=1, **LASTS)
    set_node_state(node_of(lease), NodeState.LOST, sim)
    watch(sim, 300)
    assert reload_lease(lease).end_reason == "device_lost"


def test_the_end_of_another_program_is_no_run(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), workload="jupyter", image="brief/lab")
    watch(sim, 60)
    assert reload_lease(lease).state == LeaseState.RELEASED
    assert attempts(lease) == []
