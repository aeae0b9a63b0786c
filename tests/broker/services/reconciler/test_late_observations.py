"""Late observations of pods that ended earlier."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from broker.domain.lifecycle.states import EndReason
from broker.models import Lease
from broker.provisioners.base import HeldPod, Observation, ObservedState, ProvisionSpec
from broker.provisioners.kubernetes.client.objects import ObservedPod
from broker.provisioners.kubernetes.observe.pod_observation import observe_pods
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.inventory import cluster_provisioners
from broker.services.leases.provision_specs import load_provision_spec
from broker.services.reconciler import lease_reconciler, observation_outcomes
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, create_gpus, create_tenant, offering, reload_lease, transitions_of

LAG = timedelta(seconds=6)  # of an agent's watch of pods behind its pulse
READY = [{"type": "Ready", "status": "True"}]
Body = dict[str, Any]


def moment(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def pod(uid: str, made: datetime, *, node: str = "n1", ended: datetime | None = None, **status: Any) -> Body:
    """Return a running, or a deleted and ended, pod."""
    meta: Body = {"name": "p-0", "uid": uid, "creationTimestamp": moment(made)}
    meta |= {"finalizers": ["gpubroker.dev/metering"]}
    state: Body = {"running": {"startedAt": moment(made)}}
    if ended:
        meta |= {"deletionTimestamp": moment(ended), "deletionGracePeriodSeconds": 0}
        state = {"terminated": {"exitCode": 137, "startedAt": moment(made), "finishedAt": moment(ended)}}
    runs: Body = {"phase": "Running", "conditions": READY, "containerStatuses": [{"state": state}]}
    spec = {"nodeName": node, "restartPolicy": "Always"}
    return {"metadata": meta, "spec": spec, "status": status or runs}


def pending_pod(uid: str, made: datetime) -> Body:
    """Return a controller's replacement pod without a node."""
    return pod(uid, made, node="", phase="Pending")


class ScriptedProvisioner(SimulatedProvisioner):
    """A cluster with scripted pods, seen through its agent's cache while fresh."""

    def __init__(self) -> None:
        self.pods: list[Body] = []
        self.remembered: list[Body] = []
        self.pulse: datetime | None = None
        self.hosts_heard: datetime | None = None  # when its node was, which is silent
        self.let_go_of: list[HeldPod] = []

    def observe(self, order: ProvisionSpec, *, now: datetime) -> Observation:
        if self.pulse and not order.doubted:
            return replace(_seen(self.remembered, now), last_seen=self.pulse)
        if heard := self.hosts_heard:
            return Observation(ObservedState.LOST, "node n1 is unreachable", last_seen=heard, proven_until=heard)
        return _seen(self.pods, now)

    def let_go(self, order: ProvisionSpec, remains: tuple[HeldPod, ...]) -> None:
        self.let_go_of += remains


def _seen(pods: list[Body], now: datetime) -> Observation:
    decoded = [msgspec.json.decode(msgspec.json.encode(each), type=ObservedPod) for each in pods]
    return observe_pods(decoded, ranks=1, now=now)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> ScriptedProvisioner:
    create_gpus(1)
    made = ScriptedProvisioner()
    monkeypatch.setattr(cluster_provisioners, "provisioner_of", lambda order: made)
    return made


@pytest.fixture
def lease(sim: Simulation, cluster: ScriptedProvisioner) -> Lease:
    """Return a lease with a running pod, one minute after its start."""
    lease = reload_lease(sim.create_lease(create_tenant(), offering()))
    cluster.pods = cluster.remembered = [pod("a", sim.now)]
    sim.messages.clear()
    sim.clock.at = (sim.now + timedelta(seconds=60)).replace(microsecond=0)
    return lease


def reconcile(sim: Simulation, lease: Lease) -> Lease:
    lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=sim.now)
    return reload_lease(lease)


def charged(lease: Lease) -> tuple[str, datetime]:
    step = next(step for step in transitions_of(lease) if step.before == "active")
    return step.reason, step.at


def end_pod_before_a_stale_observation(sim: Simulation, cluster: ScriptedProvisioner, lease: Lease) -> datetime:
    """End the pod while its watch lags, and reconcile the lease."""
    ended = sim.now
    cluster.pods = [pod("a", reload_lease(lease).active_at or ended, ended=ended)]
    sim.clock.at += LAG
    cluster.pulse = sim.now
    assert reconcile(sim, lease).seen_at == ended + LAG
    return ended


def test_a_late_report_of_a_replaced_pod_ends_its_lease_when_the_pod_ended(
    sim: Simulation, cluster: ScriptedProvisioner, lease: Lease
) -> None:
    ended = end_pod_before_a_stale_observation(sim, cluster, lease)
    sim.clock.at += timedelta(seconds=1)
    cluster.pulse = None  # the watch brings the end: it is asked of the cluster itself
    assert reconcile(sim, lease).seen_at == ended
    assert [each.uid for each in cluster.let_go_of] == ["a"]
    cluster.pods = [pending_pod("b", sim.now)]
    sim.run_with_sweeps(60)
    assert charged(lease) == (EndReason.DEVICE_LOST, ended)
    assert "it no longer ran: waiting for its node" in transitions_of(lease)[-2].cause


def test_an_outdated_watch_of_a_released_pod_proves_nothing(
    sim: Simulation, cluster: ScriptedProvisioner, lease: Lease
) -> None:
    ended = end_pod_before_a_stale_observation(sim, cluster, lease)
    cluster.pulse = None
    reconcile(sim, lease)
    cluster.pods, cluster.pulse = [pending_pod("b", sim.now)], sim.now + timedelta(seconds=2)
    sim.clock.at += timedelta(seconds=3)
    assert reconcile(sim, lease).seen_at == ended  # though what is remembered is ready
    sim.run_with_sweeps(60)
    assert charged(lease) == (EndReason.DEVICE_LOST, ended)


def test_an_immediately_replaced_pod_ends_its_lease_at_its_own_end(
    sim: Simulation, cluster: ScriptedProvisioner, lease: Lease
) -> None:
    ended = end_pod_before_a_stale_observation(sim, cluster, lease)
    cluster.pulse, cluster.pods = None, [*cluster.pods, pending_pod("b", ended + timedelta(seconds=2))]
    assert reconcile(sim, lease).seen_at == ended
    cluster.pods = cluster.pods[1:]
    sim.run_with_sweeps(60)
    assert charged(lease) == (EndReason.DEVICE_LOST, ended)


@pytest.mark.deep
def test_an_unobserved_end_is_dated_to_the_creation_of_the_replacement(
    sim: Simulation, cluster: ScriptedProvisioner, lease: Lease
) -> None:
    """Without its finalizer, no pod remains that has an end time."""
    made = sim.now + timedelta(seconds=1)
    end_pod_before_a_stale_observation(sim, cluster, lease)
    cluster.pulse, cluster.pods = None, [pending_pod("b", made)]
    assert reconcile(sim, lease).seen_at == made
    sim.run_with_sweeps(6 * 60)
    assert charged(lease) == (EndReason.DEVICE_LOST, made)


def test_a_lease_released_during_pod_replacement_is_charged_to_the_pods_end(
    sim: Simulation, cluster: ScriptedProvisioner, lease: Lease
) -> None:
    ended = end_pod_before_a_stale_observation(sim, cluster, lease)
    cluster.pulse = None
    reconcile(sim, lease)
    sim.clock.at += timedelta(seconds=9)
    sim.release_lease(reload_lease(lease))
    assert charged(lease) == (EndReason.BY_TENANT, ended)


def test_a_release_on_an_unreachable_node_is_charged_until_it_was_last_seen(
    sim: Simulation, cluster: ScriptedProvisioner, lease: Lease
) -> None:
    heard, cluster.pulse = sim.now - timedelta(seconds=4), sim.now
    assert reconcile(sim, lease).seen_at == sim.now
    cluster.pulse, cluster.hosts_heard = None, heard
    sim.clock.at += timedelta(seconds=3)
    assert reconcile(sim, lease).seen_at == heard
    sim.release_lease(reload_lease(lease))
    assert charged(lease) == (EndReason.BY_TENANT, heard)


def test_a_lease_that_expires_during_pod_replacement_ends_when_its_pod_did(
    sim: Simulation, cluster: ScriptedProvisioner, lease: Lease
) -> None:
    ended = end_pod_before_a_stale_observation(sim, cluster, lease)
    cluster.pulse = None
    reconcile(sim, lease)
    cluster.pods = [pending_pod("b", sim.now)]
    sim.messages.clear()
    sim.clock.at = (lease.ends_at or sim.now) + timedelta(seconds=31)
    reconcile(sim, lease)
    assert charged(lease) == (EndReason.EXPIRED, ended)


def test_a_pod_replaced_within_thirty_seconds_is_charged_without_interruption(
    sim: Simulation, cluster: ScriptedProvisioner, lease: Lease
) -> None:
    end_pod_before_a_stale_observation(sim, cluster, lease)
    cluster.pulse = None
    reconcile(sim, lease)
    sim.clock.at += timedelta(seconds=10)
    cluster.pods = [pod("b", sim.now)]
    assert reconcile(sim, lease).conditions == {}
    assert reload_lease(lease).seen_at == sim.now
    sim.release_lease(reload_lease(lease))
    assert charged(lease) == (EndReason.BY_TENANT, sim.now)


def test_a_lease_that_ended_before_it_was_active_costs_nothing(
    sim: Simulation, cluster: ScriptedProvisioner, lease: Lease
) -> None:
    cluster.pods = [pod("a", lease.state_since, ended=lease.state_since - timedelta(seconds=5))]
    sim.clock.at = lease.state_since + timedelta(seconds=5)
    assert reconcile(sim, lease).seen_at == lease.state_since
    sim.release_lease(reload_lease(lease))
    assert charged(lease) == (EndReason.BY_TENANT, lease.state_since)


def test_an_observation_counts_from_its_request_time(
    sim: Simulation, cluster: ScriptedProvisioner, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = sim.now

    def slowly(order: ProvisionSpec, *, now: datetime) -> Observation:
        sim.clock.at += timedelta(seconds=5)
        return _seen(cluster.pods, now)

    monkeypatch.setattr(cluster, "observe", slowly)
    assert reconcile(sim, lease).seen_at == wanted


def test_an_unreachable_lease_is_marked_as_doubted(sim: Simulation, cluster: ScriptedProvisioner, lease: Lease) -> None:
    with tenant_scope(lease.tenant_id):
        assert not load_provision_spec(reload_lease(lease)).doubted
        observation_outcomes.apply_observation(
            reload_lease(lease), Observation(ObservedState.LOST, "evicted", last_seen=sim.now), sim.now
        )
        assert load_provision_spec(reload_lease(lease)).doubted
