"""Effects of observations on leases, and notifications of workers."""

from datetime import timedelta
from typing import Any

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Cluster, ClusterObject, Lease, StaleLease
from broker.provisioners.base import Observation, ObservedState, spec_name
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.clusters.observed import observed_objects
from broker.services.clusters.observed.observed_objects import ObservedObject
from broker.services.reconciler import lease_reconciler
from ports import outbox
from ports.models import OutboxMessage
from tenants.services.rls import tenant_scope
from tests.simulation import Simulation, create_gpus, create_tenant, node_of, offering, reload_lease, state_path

S = LeaseState
EnqueuedMessages = list[tuple[str, str]]
RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


class Scene:
    """A lease, and the observations of its cluster's agent."""

    def __init__(self, sim: Simulation, *, quantity: int = 1, state: LeaseState = S.PROVISIONING) -> None:
        create_gpus(2)
        self.sim, self.version = sim, 10
        self.lease = sim.create_lease(
            create_tenant(), offering("whole-gpu" if quantity > 1 else "1g.10gb"), state, quantity=quantity
        )
        sim.messages.clear()
        self.node = node_of(self.lease)
        self.cluster = Cluster.objects.get()
        self.enqueued: EnqueuedMessages = []

    def sees(self, kind: str, name: str, body: dict[str, Any] | None, *, generation: int | None = None) -> int:
        """Let the agent see one object of the lease; None when it is gone."""
        self.version += 1
        generation = generation or self.lease.generation
        order = spec_name(self.lease.pk, generation)
        marks = {"gpubroker.dev/lease": self.lease.pk, "gpubroker.dev/tenant": self.lease.tenant_id}
        if body is not None:
            body = {"metadata": {"name": name, "labels": marks, **body.pop("metadata", {})}, **body}
        seen = ObservedObject(
            kind, "gt-1", name, f"u-{name}", self.version, self.lease.pk, self.lease.tenant_id, order, body
        )
        with outbox.captured(lambda task, subject, tenant, at: self._hear(task, subject, at)):
            return observed_objects.record_observed(self.cluster, [seen], now=self.sim.now)

    def _hear(self, task: str, subject: str, at: Any) -> None:
        if at <= self.sim.now:
            self.enqueued.append((task, subject))

    def anchor(self, **meta: Any) -> None:
        self.sees("ConfigMap", "anchor", {"metadata": meta})

    def pod(self, status: dict[str, Any], *, name: str = "p", rank: int = 0, node: str = "n01", **meta: Any) -> None:
        marks = {"labels": {"gpubroker.dev/rank": str(rank)}, **meta}
        self.sees("Pod", name, {"metadata": marks, "spec": {"nodeName": node}, "status": status})

    @property
    def state(self) -> str:
        return str(reload_lease(self.lease).state)

    @property
    def step(self) -> tuple[str, str]:
        return ("broker.reconcile_lease", self.lease.pk)


@pytest.fixture
def scene(sim: Simulation) -> Scene:
    return Scene(sim)


def test_an_observation_activates_its_lease_without_notifying_a_worker(scene: Scene) -> None:
    scene.anchor()
    assert (scene.state, scene.enqueued) == ("provisioning", [])
    scene.pod(RUNNING)
    assert scene.state == "active"
    assert scene.enqueued == []
    assert state_path(scene.lease) == "requested queued provisioning active"
    assert reload_lease(scene.lease).seen_at == scene.sim.now


def test_repeated_progress_is_stored_once(scene: Scene) -> None:
    with tenant_scope(scene.lease.tenant_id):
        Lease.objects.filter(pk=scene.lease.pk).update(progress={})
    scene.anchor()
    scene.pod({"phase": "Pending"})
    assert reload_lease(scene.lease).progress["text"] == "waiting for its node to accept it"
    version = reload_lease(scene.lease).version
    scene.pod({"phase": "Pending", "reason": "still"})
    assert reload_lease(scene.lease).version == version
    assert scene.enqueued == []


def test_a_launch_updates_its_lease_once_for_progress_and_once_when_active(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []
    tell = lease_reconciler.apply_agent_observation

    def noted(*of: Any, now: Any) -> bool:
        reported.append(of[3].text)
        return tell(*of, now=now)

    monkeypatch.setattr(lease_reconciler, "apply_agent_observation", noted)
    with tenant_scope(scene.lease.tenant_id):
        Lease.objects.filter(pk=scene.lease.pk).update(progress={})
    scene.anchor()
    scene.pod({"phase": "Pending"}, node="")  # not scheduled yet
    scene.pod({"phase": "Pending"})
    scene.pod({"phase": "Pending", "conditions": [{"type": "Initialized", "status": "True"}]})
    scene.pod(RUNNING)
    scene.pod({**RUNNING, "reason": "and well"})
    assert reported == ["waiting for its node to accept it", "readiness verified"]
    assert (scene.state, scene.enqueued) == ("active", [])


def test_a_pod_without_its_anchor_activates_no_lease(scene: Scene) -> None:
    scene.pod(RUNNING)
    assert (scene.state, scene.enqueued) == ("provisioning", [])  # its anchor will be observed, too
    scene.anchor()
    assert scene.state == "active"


def test_a_pod_whose_anchor_is_being_deleted_activates_no_lease(scene: Scene) -> None:
    scene.anchor(deletionTimestamp="2026-11-21T09:00:00Z")
    scene.enqueued.clear()
    scene.pod(RUNNING)
    assert (scene.state, scene.enqueued) == ("provisioning", [scene.step])


def test_a_pod_on_an_unreachable_node_is_left_to_a_worker(scene: Scene) -> None:
    scene.anchor()
    unheard = {
        "metadata": {"name": "n01"},
        "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
    }
    ClusterObject.objects.create(
        cluster=scene.cluster,
        kind="Node",
        name="n01",
        uid="u",
        version=1,
        body=unheard,
        seen_at=scene.sim.now,
    )
    scene.pod(RUNNING)
    assert (scene.state, scene.enqueued) == ("provisioning", [scene.step])


def test_a_possible_termination_is_left_to_a_worker(scene: Scene) -> None:
    scene.anchor()
    scene.pod({"phase": "Failed"})
    assert (scene.state, scene.enqueued) == ("provisioning", [scene.step])


HELD = {"finalizers": ["gpubroker.dev/metering"], "uid": "u"}


def test_a_replaced_pod_is_left_for_a_worker_to_release(scene: Scene) -> None:
    scene.anchor()
    scene.pod(RUNNING)
    assert (scene.state, scene.enqueued) == ("active", [])
    scene.pod({"phase": "Failed"}, name="old", creationTimestamp="2026-11-21T08:00:00Z", **HELD)
    scene.pod(RUNNING, creationTimestamp="2026-11-21T09:00:00Z")
    scene.enqueued.clear()
    scene.pod({**RUNNING, "reason": "still"}, creationTimestamp="2026-11-21T09:00:00Z")
    assert (scene.state, scene.enqueued) == ("active", [scene.step])


@pytest.mark.parametrize(("held", "notifies"), [(HELD, True), ({}, False)])
def test_only_a_pod_held_by_our_finalizer_during_release_notifies_a_worker(
    sim: Simulation, held: dict[str, Any], notifies: bool
) -> None:
    scene = Scene(sim, state=S.RELEASING)
    scene.anchor(deletionTimestamp="2026-11-21T09:00:00Z")
    scene.pod(RUNNING, **held)
    assert scene.enqueued == [], "it may have been released a moment ago"
    scene.pod(RUNNING, deletionTimestamp="2026-11-21T09:00:00Z", **held)
    assert bool(scene.enqueued) is notifies


def test_an_abandoned_placement_activates_no_lease(scene: Scene) -> None:
    scene.sees("ConfigMap", "old", {}, generation=7)
    scene.sees("Pod", "old", {"status": RUNNING}, generation=7)
    assert (scene.state, scene.enqueued) == ("provisioning", [scene.step, scene.step])


def test_a_gang_on_one_node_is_active_when_its_pod_runs(sim: Simulation) -> None:
    scene = Scene(sim, quantity=2)
    scene.anchor()
    scene.pod(RUNNING)
    assert scene.state == "active"  # both GPUs are on one node, so one pod has them


def test_a_healthy_active_lease_notifies_no_worker(sim: Simulation) -> None:
    scene = Scene(sim, state=S.ACTIVE)
    scene.anchor()
    scene.enqueued.clear()
    scene.pod(RUNNING)
    assert scene.enqueued == []
    with tenant_scope(scene.lease.tenant_id):
        Lease.objects.update(conditions={"unreachable": "since a while"})
    scene.pod({**RUNNING, "reason": "again"})
    assert scene.enqueued == [scene.step]


def test_a_lost_pod_of_an_active_lease_notifies_a_worker(sim: Simulation) -> None:
    scene = Scene(sim, state=S.ACTIVE)
    scene.anchor()
    scene.pod(RUNNING)
    scene.enqueued.clear()
    scene.sees("Pod", "p", None)
    assert scene.enqueued == [scene.step]


def test_an_ended_lease_is_not_activated(scene: Scene) -> None:
    with tenant_scope(scene.lease.tenant_id):
        Lease.objects.update(end_date=scene.sim.now - timedelta(seconds=1))
    scene.anchor()
    scene.pod(RUNNING)
    assert (scene.state, scene.enqueued[-1]) == ("provisioning", scene.step)


def test_a_release_notifies_a_worker_when_its_last_object_is_gone(sim: Simulation) -> None:
    scene = Scene(sim, state=S.ACTIVE)
    scene.anchor()
    scene.pod(RUNNING)
    with tenant_scope(scene.lease.tenant_id):
        Lease.objects.update(state="releasing")
    scene.enqueued.clear()
    scene.anchor(deletionTimestamp="2026-11-21T09:00:00Z")
    scene.sees("Pod", "p", None)
    assert scene.enqueued == []
    scene.sees("ConfigMap", "anchor", None)
    assert scene.enqueued == [scene.step]


def test_a_lease_changed_in_the_meantime_is_left_to_a_worker(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def stale(*_: object, **__: object) -> None:
        raise StaleLease(scene.lease.pk)

    monkeypatch.setattr(Lease, "transition", stale)
    scene.anchor()
    scene.pod(RUNNING)
    assert (scene.state, scene.enqueued) == ("provisioning", [scene.step])


def test_a_worker_slower_than_the_agent_enqueues_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def ensure(*_: object, **__: object) -> Observation:
        scene.anchor()
        scene.pod(RUNNING)
        return Observation(ObservedState.READY)

    monkeypatch.setattr(SimulatedProvisioner, "ensure", ensure)
    with outbox.captured(lambda task, subject, tenant, at: scene._hear(task, subject, at)):
        lease_reconciler.reconcile_lease(scene.lease.pk, scene.lease.tenant_id, now=scene.sim.now)
    assert (scene.state, scene.enqueued) == ("active", [])


def test_an_observation_of_an_unknown_or_active_lease_changes_nothing(sim: Simulation) -> None:
    scene = Scene(sim, state=S.ACTIVE)
    ready = Observation(ObservedState.READY)
    where = scene.lease.tenant_id
    assert not lease_reconciler.apply_agent_observation("lse_unknown", where, 1, ready, now=sim.now)
    assert not lease_reconciler.apply_agent_observation(
        scene.lease.pk, where, scene.lease.generation, ready, now=sim.now
    )


def test_an_observation_of_an_earlier_placement_activates_no_lease(scene: Scene) -> None:
    """It may be placed again between observation and transition."""
    where, before = scene.lease.tenant_id, scene.lease.generation - 1
    assert not lease_reconciler.apply_agent_observation(
        scene.lease.pk, where, before, Observation(ObservedState.READY), now=scene.sim.now
    )
    assert scene.state == "provisioning"


def test_unchanged_progress_is_not_written_again(scene: Scene) -> None:
    at = Observation(ObservedState.PENDING, "pulling image")
    where, generation = scene.lease.tenant_id, scene.lease.generation
    assert lease_reconciler.apply_agent_observation(scene.lease.pk, where, generation, at, now=scene.sim.now)
    version = reload_lease(scene.lease).version
    assert lease_reconciler.apply_agent_observation(scene.lease.pk, where, generation, at, now=scene.sim.now)
    assert reload_lease(scene.lease).version == version


def test_a_late_pod_of_an_abandoned_placement_triggers_orphan_removal(scene: Scene) -> None:
    """A controller may act on old state after the proof of absence."""
    abandon_placement(scene, generation=scene.lease.generation + 1)
    assert triggers_orphan_removal(scene)


def test_a_pod_of_a_released_lease_triggers_orphan_removal(scene: Scene) -> None:
    abandon_placement(scene, state=S.RELEASED)
    assert triggers_orphan_removal(scene)


def test_simultaneous_stray_pods_trigger_one_cleanup(scene: Scene) -> None:
    abandon_placement(scene, state=S.RELEASED)
    OutboxMessage.objects.create(task="broker.remove_orphans", subject=scene.cluster.pk, at=scene.sim.now)
    assert not triggers_orphan_removal(scene)


def test_a_pod_still_occupying_its_placement_is_left_to_the_waiting_release(scene: Scene) -> None:
    with tenant_scope(scene.lease.tenant_id):
        assert Lease.objects.filter(pk=scene.lease.pk).update(generation=scene.lease.generation + 1)
    assert not triggers_orphan_removal(scene)


def test_a_final_deletion_event_is_not_reported_as_a_stray_pod(scene: Scene) -> None:
    abandon_placement(scene, state=S.RELEASED)
    assert not triggers_orphan_removal(scene, there=False)


def test_a_pod_of_a_newer_generation_is_not_removed_at_once(scene: Scene) -> None:
    abandon_placement(scene, generation=scene.lease.generation - 1)
    assert not triggers_orphan_removal(scene)


def abandon_placement(scene: Scene, **how: Any) -> None:
    """Update the lease and release its allocations here."""
    with tenant_scope(scene.lease.tenant_id):
        assert Lease.objects.filter(pk=scene.lease.pk).update(**how)
        scene.lease.allocations.update(released_at=scene.sim.now + timedelta(seconds=1))


def triggers_orphan_removal(scene: Scene, *, there: bool = True) -> bool:
    """Observe the first pod; return whether orphan removal is enqueued."""
    enqueued = list[str]()
    order = spec_name(scene.lease.pk, scene.lease.generation)
    body = {"metadata": {"name": "p"}, "spec": {"nodeName": "n01"}, "status": {}} if there else None
    lease, tenant = scene.lease.pk, scene.lease.tenant_id
    seen = ObservedObject("Pod", "gt-1", "p", "u-p", scene.version + 1, lease, tenant, order, body)
    with outbox.captured(lambda task, subject, tenant, at: enqueued.append(task)):
        observed_objects.record_observed(scene.cluster, [seen], now=scene.sim.now)
    return "broker.remove_orphans" in enqueued
