"""Leases on a node that is silent for a while, as when it reboots."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from broker.domain.lifecycle.states import LeaseState as S
from broker.models import Lease, Node
from broker.provisioners.base import Observation, ObservedState, ProvisionSpec
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.clusters.health import node_loss
from broker.services.inventory import cluster_provisioners
from broker.services.reconciler import lease_reconciler
from tests.simulation import Simulation, create_gpus, create_tenant, node_of, offering, reload_lease, transitions_of

REBOOT_S, LIMIT_S = 120, 300


class RebootingProvisioner(SimulatedProvisioner):
    """A simulated cluster whose next answers about active leases are given."""

    answer: Callable[[datetime], Observation] | None = None

    def observe(self, spec: ProvisionSpec, *, now: datetime) -> Observation:
        return self.answer(now) if self.answer else super().observe(spec, now=now)


@pytest.fixture
def cluster(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> RebootingProvisioner:
    made = RebootingProvisioner()
    monkeypatch.setattr(cluster_provisioners, "shared_provisioner", lambda: made)
    create_gpus(1)
    return made


@pytest.fixture
def lease(cluster: RebootingProvisioner, sim: Simulation) -> Lease:
    made = sim.create_lease(create_tenant(), offering(), max_duration_s=3600)
    sim.run(60)
    return reload_lease(made)


def hear(node: Node, sim: Simulation, *, hears: bool) -> None:
    node_loss.update_node_state(node.cluster, node.name, hears=hears, now=sim.now)


def charged_s(lease: Lease) -> float:
    steps = transitions_of(lease)
    return sum((step.at - step.prev_at).total_seconds() for step in steps if step.before == S.ACTIVE and step.prev_at)


def test_a_lease_outlasts_a_reboot_of_its_node_and_is_not_charged_for_it(lease: Lease, sim: Simulation) -> None:
    ends_at, node, ran_s = lease.ends_at, node_of(lease), 60
    hear(node, sim, hears=False)
    sim.run_with_sweeps(REBOOT_S)
    silent = reload_lease(lease)
    assert silent.state == S.ACTIVE
    assert "Nothing has been charged since then. If the node is not back by" in silent.conditions["unreachable"]
    hear(node, sim, hears=True)
    sim.run_with_sweeps(15)
    again = reload_lease(lease)
    assert (again.state, again.generation, again.conditions, again.progress) == (S.ACTIVE, lease.generation, {}, {})
    assert [(step.before, step.after) for step in transitions_of(lease)][-2:] == [
        (S.ACTIVE, S.PROVISIONING),
        (S.PROVISIONING, S.ACTIVE),
    ]
    assert ends_at is not None
    assert again.ends_at is not None
    assert again.ends_at - ends_at == pytest.approx(timedelta(seconds=REBOOT_S), abs=timedelta(seconds=15))
    sim.run(30)
    sim.release_lease(lease)
    sim.run_with_sweeps(30)
    assert charged_s(lease) <= ran_s + 15 + 30 + 5


def test_a_short_silence_is_no_outage(lease: Lease, sim: Simulation) -> None:
    node = node_of(lease)
    hear(node, sim, hears=False)
    sim.run_with_sweeps(15)
    hear(node, sim, hears=True)
    sim.run_with_sweeps(15)
    assert (reload_lease(lease).state, reload_lease(lease).conditions) == (S.ACTIVE, {})
    assert S.PROVISIONING not in [step.after for step in transitions_of(lease)[3:]]


def test_a_lease_whose_node_stays_silent_ends_at_its_last_proof(lease: Lease, sim: Simulation) -> None:
    silent_at = sim.now
    hear(node_of(lease), sim, hears=False)
    sim.run_with_sweeps(LIMIT_S - 10)
    assert reload_lease(lease).state == S.ACTIVE
    sim.run_with_sweeps(90)
    ended = reload_lease(lease)
    assert (ended.state, ended.end_reason) == (S.RELEASED, "device_lost")
    assert ended.ended_at is not None
    assert ended.ended_at <= silent_at + timedelta(seconds=1)


def fall_silent(cluster: RebootingProvisioner, sim: Simulation) -> datetime:
    """Let the node send no heartbeats from now on; return since when."""
    since = sim.now
    cluster.answer = lambda now: Observation(
        ObservedState.LOST, "node n1 is unreachable", last_seen=since, proven_until=since, node_unreachable=True
    )
    lease_reconciler.check_active_leases(now=sim.now)
    return since


def test_a_pod_that_is_made_anew_after_the_reboot_keeps_the_lease(
    cluster: RebootingProvisioner, lease: Lease, sim: Simulation
) -> None:
    since = fall_silent(cluster, sim)
    sim.run_with_sweeps(REBOOT_S)
    cluster.answer = lambda now: Observation(
        ObservedState.LOST, "its node could not allocate the slice", last_seen=now, will_restart=True
    )
    sim.run_with_sweeps(20)
    cluster.answer = lambda now: Observation(ObservedState.PENDING, "preparing its container", last_seen=now)
    sim.run_with_sweeps(20)
    cluster.answer = lambda now: Observation(ObservedState.PENDING, "pulling image")
    sim.run_with_sweeps(40)
    waiting = reload_lease(lease)
    assert waiting.state == S.ACTIVE
    assert waiting.seen_at is not None
    assert waiting.seen_at <= since + timedelta(seconds=1), "what pods report of an outage proves nothing"
    assert "Its node is back, and its program starts again" in waiting.conditions["unreachable"]
    cluster.answer = None
    sim.run_with_sweeps(20)
    assert (reload_lease(lease).state, reload_lease(lease).conditions) == (S.ACTIVE, {})
    sim.release_lease(lease)
    sim.run_with_sweeps(30)
    assert charged_s(lease) <= 60 + 20 + 10


def test_a_program_that_does_not_come_back_with_its_node_ends_its_lease(
    cluster: RebootingProvisioner, lease: Lease, sim: Simulation
) -> None:
    since = fall_silent(cluster, sim)
    sim.run_with_sweeps(REBOOT_S)
    cluster.answer = lambda now: Observation(ObservedState.PENDING, "pulling image")
    sim.run_with_sweeps(2 * LIMIT_S - REBOOT_S - 15)
    assert reload_lease(lease).state == S.ACTIVE
    sim.run_with_sweeps(60)
    ended = reload_lease(lease)
    assert ended.end_reason == "device_lost"
    assert ended.ended_at is not None
    assert ended.ended_at <= since + timedelta(seconds=1)


@pytest.mark.parametrize("text", ["its GPU is lost: XID 79", "node n1 is no longer in the cluster"])
def test_what_is_lost_for_good_is_not_waited_for(
    text: str, cluster: RebootingProvisioner, lease: Lease, sim: Simulation
) -> None:
    since = fall_silent(cluster, sim)
    sim.run_with_sweeps(10)
    cluster.answer = lambda now: Observation(ObservedState.LOST, text, last_seen=since)
    sim.run_with_sweeps(60)
    assert reload_lease(lease).end_reason == "device_lost"


@pytest.mark.parametrize(("retries", "state"), [(0, "device_lost"), (2, "")])
def test_a_batch_run_that_died_with_its_node_is_the_providers_loss(
    retries: int, state: str, cluster: RebootingProvisioner, sim: Simulation
) -> None:
    made = sim.create_lease(
        create_tenant(), offering(), max_duration_s=3600, workload="batch", command="sleep 3000", retries=retries
    )
    fall_silent(cluster, sim)
    sim.run_with_sweeps(REBOOT_S)
    assert reload_lease(made).state == S.ACTIVE
    cluster.answer = lambda now: Observation(ObservedState.LOST, "its node restarted and lost it", last_seen=now)
    sim.run_with_sweeps(10)
    cluster.answer = None
    sim.run_with_sweeps(60)
    again = reload_lease(made)
    assert (again.end_reason if again.end_reason != "none" else "", again.attempt) == (state, 1)
    assert charged_s(made) <= 60
