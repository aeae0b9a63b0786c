"""A lease in its cluster: creation, observation, loss and end."""

from datetime import timedelta

import pytest
from django.conf import LazySettings

from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Gpu, Lease, Node, NodeState, SimulatedPod, StaleLease
from broker.provisioners.base import ClusterUnreachable, Observation, ObservedState, ProvisionSpec
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.clusters import orphan_removal
from broker.services.inventory import cluster_provisioners
from broker.services.inventory.hardware import SimulatedRack
from broker.services.leases.lifecycle import termination
from broker.services.reconciler import lease_reconciler
from broker.services.reconciler.lease_reconciler import CLAIM_TIME, MAX_UNFINISHED_CLAIMS
from broker.services.reconciler.observation_kinds import LOST_AFTER
from tenants.services.rls import tenant_scope
from tests.simulation import (
    MODEL,
    OPERATOR,
    REGION,
    Simulation,
    create_fleet,
    create_gpus,
    create_tenant,
    held_allocations,
    lose_gpu,
    node_of,
    offering,
    reload_lease,
    set_node_state,
    state_path,
    transitions_of,
)

S = LeaseState
TWO_NODES = SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=1)


class Cluster(SimulatedProvisioner):
    """A simulated cluster that can be silent or interrupt its answers."""

    def __init__(self) -> None:
        self.silent = False
        self.calls = 0
        self.meanwhile: list[object] = []

    def ensure(self, order: ProvisionSpec, *, now: object) -> Observation:  # type: ignore[override]
        self.calls += 1
        self._perhaps_silent()
        seen = super().ensure(order, now=now)  # type: ignore[arg-type]
        while self.meanwhile:
            self.meanwhile.pop()()  # type: ignore[operator]
        return seen

    def remove(self, order: ProvisionSpec, *, now: object) -> Observation:  # type: ignore[override]
        self._perhaps_silent()
        return super().remove(order, now=now)  # type: ignore[arg-type]

    def _perhaps_silent(self) -> None:
        if self.silent:
            raise ClusterUnreachable("timed out after 5 s")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    cluster = Cluster()
    monkeypatch.setattr(cluster_provisioners, "shared_provisioner", lambda: cluster)
    return cluster


def names() -> set[str]:
    return set(SimulatedPod.objects.filter(gone_at=None).values_list("name", flat=True))


def test_a_lease_goes_from_request_to_release_within_seconds(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    lease = sim.request_lease(kestrel, offering())
    sim.run(12)
    assert reload_lease(lease).state == S.ACTIVE
    sim.release_lease(lease)
    sim.run(5)
    assert state_path(lease) == "requested queued provisioning active releasing released"
    assert [step.reason for step in transitions_of(lease)][-2:] == ["by_tenant", "by_tenant"]
    assert held_allocations(lease) == []
    assert not SimulatedPod.objects.exists()
    assert kestrel.quota_used() == 0


def test_provisioning_progress_is_stored_on_the_lease(sim: Simulation, settings: LazySettings) -> None:
    settings.SIMULATED_PROGRESS_S = 0.7
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering(), S.PROVISIONING)
    sim.run(1)
    assert reload_lease(lease).progress["text"] == "pulling image"
    assert 0 < reload_lease(lease).progress["percent"] < 100


def test_the_end_of_a_lease_counts_from_its_activation(sim: Simulation) -> None:
    create_gpus(1)
    lease = reload_lease(sim.create_lease(create_tenant(), offering(), max_duration_s=120))
    assert lease.active_at == transitions_of(lease)[-1].at
    assert lease.ends_at == lease.active_at + timedelta(seconds=120)


def test_a_lease_expires_exactly_at_its_end(sim: Simulation) -> None:
    create_gpus(1)
    lease = reload_lease(sim.create_lease(create_tenant(), offering(), max_duration_s=120))
    sim.run(130)
    ended = reload_lease(lease)
    assert (ended.state, ended.end_reason, ended.ended_at) == ("released", "expired", lease.ends_at)


def test_an_end_date_before_the_full_duration_ends_the_lease(sim: Simulation) -> None:
    create_gpus(1)
    end = sim.now + timedelta(seconds=90)
    lease = sim.create_lease(create_tenant(), offering(), max_duration_s=3600, end_date=end)
    sim.run(120)
    assert reload_lease(lease).ended_at == end


@pytest.mark.deep
def test_an_end_date_ends_a_lease_during_provisioning(sim: Simulation) -> None:
    create_gpus(1)
    end = sim.now + timedelta(seconds=90)
    lease = sim.create_lease(create_tenant(), offering(), S.PROVISIONING, end_date=end, image="slow/image")
    sim.run_with_sweeps(240)
    assert (reload_lease(lease).end_reason, reload_lease(lease).active_at) == ("expired", None)
    assert transitions_of(lease)[-2].at == end


def test_a_late_reconciliation_charges_nothing_after_the_end(sim: Simulation) -> None:
    create_gpus(1)
    lease = reload_lease(sim.create_lease(create_tenant(), offering(), max_duration_s=120))
    sim.messages.clear()  # the workers are away for an hour
    sim.run(3600)
    sim.release_lease(lease)
    assert reload_lease(lease).ended_at == lease.ends_at
    assert transitions_of(lease)[-1].at == lease.ends_at


def test_a_refused_image_ends_the_lease_with_the_cluster_message(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.request_lease(create_tenant(), offering(), image="refuse/nothing:1")
    sim.run(10)
    assert (reload_lease(lease).state, reload_lease(lease).end_reason) == ("released", "spec_refused")
    assert "cannot be pulled" in transitions_of(lease)[-2].cause


def test_a_lease_not_ready_in_time_ends_with_a_provision_timeout(sim: Simulation, settings: LazySettings) -> None:
    settings.PROVISION_TIMEOUT_S = 60
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering(), S.PROVISIONING, image="slow/image")
    sim.run_with_sweeps(55)
    assert reload_lease(lease).state == S.PROVISIONING
    sim.run_with_sweeps(90)
    assert (reload_lease(lease).state, reload_lease(lease).end_reason) == ("released", "provision_timeout")


def test_an_operator_can_release_a_lease(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering())
    with tenant_scope(lease.tenant_id):
        termination.release_lease(
            reload_lease(lease), reason=EndReason.BY_OPERATOR, now=sim.now, actor=OPERATOR, cause="rack moves"
        )
    sim.run(5)
    assert (reload_lease(lease).end_reason, transitions_of(lease)[-2].cause) == ("by_operator", "rack moves")
    assert transitions_of(lease)[-2].actor_label == OPERATOR.label


def test_a_queued_lease_is_released_at_once(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    lease = sim.request_lease(kestrel, offering())
    sim.release_lease(lease)
    assert state_path(lease) == "requested queued releasing released"
    assert kestrel.quota_used() == 0


def test_releasing_is_idempotent_but_refused_after_the_end(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering())
    sim.release_lease(lease)
    sim.release_lease(lease)
    assert state_path(lease).endswith("active releasing")
    sim.run(5)
    with pytest.raises(termination.LeaseAlreadyOver, match="ended at 2026-11-21"):
        sim.release_lease(lease)


def test_a_release_concurrent_with_an_activation_succeeds(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering(), S.PROVISIONING)
    with tenant_scope(lease.tenant_id):
        old = reload_lease(lease)
        sim.run(12)
        termination.release_lease(old, reason=EndReason.BY_TENANT, now=sim.now)
    assert state_path(lease).endswith("provisioning active releasing")


def test_a_release_that_loses_every_race_raises_stale_lease(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering())

    def beaten(lease: Lease, *states: object, **changes: object) -> None:
        raise StaleLease(lease.pk)

    monkeypatch.setattr(Lease, "transition", beaten)
    with pytest.raises(StaleLease):
        sim.release_lease(lease)


def test_capacity_is_not_sold_again_before_the_old_pod_is_gone(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    slow = sim.create_lease(kestrel, offering("whole-gpu"), S.PROVISIONING, image="slow/image")
    waiting = sim.request_lease(kestrel, offering("whole-gpu"))
    sim.release_lease(slow)
    sim.run_with_sweeps(50)
    assert (reload_lease(slow).state, reload_lease(waiting).state) == ("releasing", "queued")
    assert len(held_allocations(slow)) == 1
    assert reload_lease(slow).progress == {"text": "shutting down", "percent": None}
    sim.run_with_sweeps(15)
    assert (reload_lease(slow).state, reload_lease(waiting).state) == ("released", "active")


def test_a_node_lost_during_provisioning_moves_the_lease_to_another_node(sim: Simulation) -> None:
    create_fleet(TWO_NODES)
    lease = sim.create_lease(create_tenant(), offering("whole-gpu"), S.PROVISIONING)
    first_node, first = node_of(lease), reload_lease(lease).generation
    sim.run(1)
    set_node_state(first_node, NodeState.LOST, sim)
    sim.run(20)
    assert reload_lease(lease).state == S.ACTIVE
    assert reload_lease(lease).generation == first + 1
    assert node_of(lease) != first_node
    assert state_path(lease) == "requested queued provisioning queued provisioning active"
    assert names() == {f"l-{lease.pk.removeprefix('lse_')}-g{first + 1}"}


def test_a_lost_node_ends_its_lease_at_the_time_of_the_loss(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering())
    node = node_of(lease)
    sim.run(60)
    unreachable_since = sim.now
    set_node_state(node, NodeState.LOST, sim)
    sim.run(5)
    assert reload_lease(lease).state == S.ACTIVE
    assert "n01 is unreachable at 09:0" in reload_lease(lease).conditions["unreachable"]
    sim.run_with_sweeps(2 * int(LOST_AFTER.total_seconds()) + 20)
    ended = reload_lease(lease)
    assert (ended.state, ended.end_reason) == ("released", "device_lost")
    assert ended.ended_at == unreachable_since.replace(microsecond=0)


def test_a_node_that_recovers_in_time_keeps_its_leases(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering())
    set_node_state(node_of(lease), NodeState.LOST, sim)
    sim.run(5)
    set_node_state(node_of(lease), NodeState.READY, sim)
    sim.run(5)
    assert (reload_lease(lease).state, reload_lease(lease).conditions) == (S.ACTIVE, {})


def test_a_failed_gpu_ends_its_lease_at_the_time_of_the_failure(sim: Simulation) -> None:
    create_gpus(2)
    lease = sim.create_lease(create_tenant(), offering("whole-gpu"))
    gpu = Gpu.objects.get(pk=held_allocations(lease)[0].gpu_id)
    sim.run(60)
    failed_at = sim.now
    lose_gpu(gpu, sim)
    sim.run_with_sweeps(60)
    assert (reload_lease(lease).end_reason, reload_lease(lease).ended_at) == (
        "device_lost",
        failed_at.replace(microsecond=0),
    )
    assert f"GPU {gpu.index} of n01 failed: XID 79" in transitions_of(lease)[-2].cause


def test_a_vanished_pod_ends_its_lease_when_it_was_last_seen(sim: Simulation) -> None:
    create_gpus(1)
    lease = reload_lease(sim.create_lease(create_tenant(), offering()))
    sim.run(100)
    SimulatedPod.objects.all().delete()
    sim.run(200)
    sim.sweep()
    sim.run(10)  # it is checked twice
    ended = reload_lease(lease)
    assert (ended.end_reason, ended.ended_at) == ("device_lost", lease.active_at)
    assert transitions_of(lease)[-2].cause == "its pod no longer exists"


def test_a_releasing_lease_on_a_lost_node_is_released_after_a_timeout(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering())
    set_node_state(node_of(lease), NodeState.LOST, sim)
    sim.release_lease(lease)
    sim.run(5)
    assert reload_lease(lease).state == S.RELEASING
    sim.run_with_sweeps(40)
    assert reload_lease(lease).state == S.RELEASED
    assert SimulatedPod.objects.exists()  # its removal is not confirmed
    set_node_state(Node.objects.get(), NodeState.READY, sim)
    sim.run()
    assert not SimulatedPod.objects.exists()


def test_an_unreachable_cluster_is_retried_and_shown_in_the_progress(sim: Simulation, cluster: Cluster) -> None:
    create_gpus(1)
    cluster.silent = True
    lease = sim.create_lease(create_tenant(), offering(), S.PROVISIONING)
    assert reload_lease(lease).progress["text"] == "the cluster does not respond: timed out after 5 s"
    cluster.silent = False
    sim.run(20)
    assert reload_lease(lease).state == S.ACTIVE


def test_a_lease_that_crashes_its_workers_is_released(sim: Simulation, cluster: Cluster) -> None:
    create_gpus(1)
    lease = sim.request_lease(create_tenant(), offering())
    with tenant_scope(lease.tenant_id):
        lease_reconciler.lease_placement.place_lease(reload_lease(lease), now=sim.now)
    sim.messages.clear()
    for _ in range(MAX_UNFINISHED_CLAIMS):
        with tenant_scope(lease.tenant_id):
            assert lease_reconciler._claim(reload_lease(lease), sim.now)  # and here the worker dies
        sim.run(CLAIM_TIME.total_seconds() + 1)
    assert reload_lease(lease).state == S.PROVISIONING
    sim.sweep()
    sim.run(5)
    assert (reload_lease(lease).state, reload_lease(lease).end_reason) == ("released", "provision_timeout")
    assert "5 workers in a row crashed on it" in transitions_of(lease)[-2].cause


def test_a_finished_worker_is_not_counted_as_crashed(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering(), S.PROVISIONING, image="slow/image")
    sim.run(60)
    assert (reload_lease(lease).state, reload_lease(lease).unfinished_claims) == (S.PROVISIONING, 0)


def test_two_workers_never_reconcile_the_same_lease(sim: Simulation, cluster: Cluster) -> None:
    create_gpus(1)
    lease = sim.request_lease(create_tenant(), offering())
    requests: list[int] = []

    def second_worker() -> None:
        before = cluster.calls
        lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=sim.now)
        requests.append(cluster.calls - before)

    cluster.meanwhile = [second_worker]
    sim.run()
    assert requests == [0]
    assert state_path(lease) == "requested queued provisioning"
    assert reload_lease(lease).claimed_until is None


def test_a_worker_with_an_expired_claim_keeps_the_claim_of_the_next(sim: Simulation, cluster: Cluster) -> None:
    create_gpus(1)
    lease, later = sim.request_lease(create_tenant(), offering()), sim.now + CLAIM_TIME + timedelta(seconds=1)

    def the_next_one() -> None:
        with tenant_scope(lease.tenant_id):
            assert lease_reconciler._claim(reload_lease(lease), later)

    cluster.meanwhile = [the_next_one]
    sim.run()
    assert cluster.meanwhile == []
    assert reload_lease(lease).claimed_until == later + CLAIM_TIME


def test_a_lease_changed_since_it_was_loaded_is_not_claimed(sim: Simulation) -> None:
    create_gpus(1)
    old = reload_lease(sim.create_lease(create_tenant(), offering(), S.PROVISIONING))
    sim.release_lease(old)
    with tenant_scope(old.tenant_id):
        loaded = reload_lease(old)
        loaded.state, loaded.seq = S.PROVISIONING, loaded.seq - 1
        assert lease_reconciler._claim(loaded, sim.now) is None


def test_a_release_during_reconciliation_is_processed_at_once(sim: Simulation, cluster: Cluster) -> None:
    create_gpus(1)
    lease = sim.request_lease(create_tenant(), offering())
    cluster.meanwhile = [lambda: sim.release_lease(lease), lambda: None]
    sim.run()
    sim.run(5)
    assert reload_lease(lease).state == S.RELEASED
    assert names() == set()


def test_a_pod_created_after_the_end_of_its_lease_is_removed_at_once(sim: Simulation, cluster: Cluster) -> None:
    create_gpus(1)
    lease = sim.request_lease(create_tenant(), offering())

    def meanwhile_it_ended() -> None:
        SimulatedPod.objects.all().delete()
        sim.release_lease(lease)
        with tenant_scope(lease.tenant_id):
            termination.finish_release(reload_lease(lease), now=sim.now)

    def made_after_all() -> None:
        meanwhile_it_ended()
        SimulatedPod.objects.create(name=order, created_at=sim.now)

    order = f"l-{lease.pk.removeprefix('lse_')}-g2"
    cluster.meanwhile = [made_after_all]
    sim.run()
    assert reload_lease(lease).state == S.RELEASED
    assert names() == set()


def test_a_pod_left_in_an_unreachable_cluster_is_removed_by_the_sweep(sim: Simulation, cluster: Cluster) -> None:
    create_gpus(1)
    lease = sim.request_lease(create_tenant(), offering())

    def ended_and_silent() -> None:
        sim.release_lease(lease)
        with tenant_scope(lease.tenant_id):
            termination.finish_release(reload_lease(lease), now=sim.now)
        cluster.silent = True

    cluster.meanwhile = [ended_and_silent]
    sim.run()
    assert len(names()) == 1
    cluster.silent = False
    assert orphan_removal.remove_orphans(now=sim.now) == 1
    assert names() == set()


def test_messages_for_ended_or_unknown_leases_do_nothing(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering(), S.RELEASED)
    steps = len(transitions_of(lease))
    lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=sim.now)
    lease_reconciler.reconcile_lease("lse_none", lease.tenant_id, now=sim.now)
    lease_reconciler.reconcile_lease(lease.pk, "ten_none", now=sim.now)
    assert len(transitions_of(lease)) == steps


@pytest.mark.deep
def test_duplicated_and_reordered_messages_change_nothing(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.request_lease(create_tenant(), offering())
    for _ in range(60):
        sim.messages += [(at, -order, *rest) for at, order, *rest in sim.messages][:1]
        sim.run(0.2)
    assert state_path(lease) == "requested queued provisioning active"
    assert len(held_allocations(lease)) == 1


def test_the_sweep_reconciles_leases_when_all_messages_are_lost(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.request_lease(create_tenant(), offering())
    for _ in range(6):
        sim.messages.clear()
        sim.run(11)
        sim.sweep()
    assert reload_lease(lease).state == S.ACTIVE
    sim.release_lease(lease)
    for _ in range(3):
        sim.messages.clear()
        sim.run(11)
        sim.sweep()
    assert reload_lease(lease).state == S.RELEASED


def test_an_orphan_is_removed_and_a_live_lease_is_kept(sim: Simulation) -> None:
    create_gpus(1)
    over = sim.create_lease(create_tenant(), offering(), S.RELEASED)
    lease = sim.create_lease(create_tenant("Osprey"), offering())
    assert orphan_removal.remove_orphans(now=sim.now) == 0
    SimulatedPod.objects.create(name=f"l-{over.pk.removeprefix('lse_')}-g1", created_at=sim.now)
    assert orphan_removal.remove_orphans(now=sim.now) == 1
    sim.run(5)
    assert orphan_removal.remove_orphans(now=sim.now) == 1  # slow to go: counted until it is gone
    assert orphan_removal.remove_orphans(now=sim.now) == 0
    assert reload_lease(lease).state == S.ACTIVE


def test_a_pod_of_an_older_generation_is_an_orphan(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering())
    SimulatedPod.objects.create(name=f"l-{lease.pk.removeprefix('lse_')}-g1", created_at=sim.now)
    assert orphan_removal.remove_orphans(now=sim.now) == 1


def test_the_full_sweep_covers_all_live_leases(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    running = sim.create_lease(kestrel, offering("whole-gpu"))
    sim.request_lease(kestrel, offering("whole-gpu"))
    over = sim.request_lease(kestrel, offering("whole-gpu"))
    sim.release_lease(over)
    assert lease_reconciler.messages_for_all_live() == [
        ("broker.reconcile_lease", running.pk, kestrel.tenant.pk),
        ("broker.run_queue", f"{MODEL}|{REGION}", ""),
    ]


def test_a_transition_not_in_the_state_table_is_refused(sim: Simulation) -> None:
    with pytest.raises(ValueError, match="queued cannot become active"):
        list(
            Lease(state="queued", state_since=sim.now)._steps(
                [S.ACTIVE], at=sim.now, actor=OPERATOR, reason=EndReason.NONE, cause=""
            )
        )


@pytest.mark.parametrize("state", [S.PROVISIONING, S.ACTIVE])
def test_a_release_without_a_reason_is_refused(sim: Simulation, state: S) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering(), state)
    with tenant_scope(lease.tenant_id), pytest.raises(ValueError, match="releasing needs an EndReason"):
        termination.release_lease(lease, reason=EndReason.NONE, now=sim.now)
    assert reload_lease(lease).state == state


def test_observed_states_match_the_protocol(sim: Simulation) -> None:
    assert {seen.value for seen in ObservedState} == {"pending", "ready", "refused", "lost", "ended", "gone"}


def test_a_worker_that_starts_too_late_leaves_the_lease_to_the_next(
    sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_gpus(1)
    lease = sim.request_lease(create_tenant(), offering())
    sim.messages.clear()
    order_of = lease_reconciler.load_provision_spec

    def held_up(lease: Lease, **options: bool) -> ProvisionSpec:
        sim.clock.at += lease_reconciler.LATEST_START + timedelta(seconds=1)
        return order_of(lease, **options)

    monkeypatch.setattr(lease_reconciler, "load_provision_spec", held_up)
    lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=sim.now)
    late = reload_lease(lease)
    assert (late.state, late.claimed_until, late.unfinished_claims) == (S.PROVISIONING, None, 0)
    assert not SimulatedPod.objects.exists()
    monkeypatch.setattr(lease_reconciler, "load_provision_spec", order_of)
    sim.run(20)
    assert reload_lease(lease).state == S.ACTIVE
