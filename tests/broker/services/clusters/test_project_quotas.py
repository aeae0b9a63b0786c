"""Repair of project quotas in a cluster, and notification of leases."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Cluster, Node
from broker.provisioners.base import Observation, ObservedState
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.agent.event_buffer import WatchEvent
from broker.provisioners.kubernetes.client.kinds import Kind
from broker.provisioners.kubernetes.client.objects import Raw
from broker.provisioners.kubernetes.render.project import project_objects
from broker.provisioners.kubernetes.render.spec import ProjectSpec
from broker.services.clusters import drift_repair_queue
from broker.services.clusters.agent.cluster_agent import ClusterAgent
from broker.services.clusters.agent.watched_kinds import QUOTAS
from broker.services.reconciler import observation_outcomes
from tenants.services.rls import tenant_scope
from tests.broker.services.clusters.test_cluster_agent import reconnect
from tests.broker.services.clusters.test_drift_repair import PROJECT_KINDS, kinds, store_anchor
from tests.simulation import Simulation, TenantContext, offering, reload_lease

Body = dict[str, Any]


class Scene:
    """An agent of the lease's cluster, and what it observes of the quota."""

    def __init__(self, agent: ClusterAgent, sim: Simulation, kestrel: TenantContext) -> None:
        self.sim, self.lease = sim, sim.create_lease(kestrel, offering(), LeaseState.PROVISIONING)
        Node.objects.update(cluster=agent.cluster)
        Cluster.objects.exclude(pk=agent.cluster.pk).delete()
        self.agent = agent
        self.is_of("ins_1")
        sim.messages.clear()

    def is_of(self, installation: str) -> None:
        """Let the agent be one of a certain installation."""
        way = replace(self.agent.connection, installation=installation)
        reconnect(self.agent, way)
        self.agent.repair.queue._connection = self.agent.quotas._connection = way

    def quota(self, *, used: str = "1", marks: Body | None = None, **hard: str) -> Body:
        whose = ProjectSpec(
            self.lease.tenant_id, self.lease.project_id, installation=self.agent.connection.installation
        )
        made = project_objects(whose, self.agent.connection.driver)
        (wanted,) = (each for each in made if each["kind"] == "ResourceQuota")
        meta = {**wanted["metadata"], "uid": "u-q", "resourceVersion": "5"}
        meta["labels"] = {**meta["labels"], **(marks or {})}
        lines = {**wanted["spec"]["hard"], **hard}
        return {"metadata": meta, "spec": {"hard": lines}, "status": {"hard": lines, "used": {"pods": used}}}

    def hears(self, how: str, *quotas: Body, version: int = 9) -> int:
        """Let the agent find something; return how often the lease was notified."""
        self.sim.messages.clear()
        items = [Raw(msgspec.json.encode(each)) for each in quotas]
        self.agent.absorb([WatchEvent(QUOTAS, how, items, version)], now=self.sim.now)
        return [hint[3] for hint in self.sim.messages].count(self.lease.pk)

    def lists(self, *quotas: Body) -> int:
        return sum(self.hears(how, *items) for how, items in (("BEGUN", ()), ("PAGED", quotas), ("LISTED", ())))

    def hurried(self) -> list[str]:
        """Return what the agent would put right now."""
        found = kinds(self.agent.repair.queue._hurried_objects())
        assert not found or found[:2] == ["Namespace", "ResourceQuota"]
        return found


@pytest.fixture
def scene(agent: ClusterAgent, sim: Simulation, kestrel: TenantContext, moments: list[float]) -> Scene:
    made = Scene(agent, sim, kestrel)
    store_anchor(made.lease)
    return made


def test_an_unchanged_quota_notifies_no_lease_in_any_notation(scene: Scene) -> None:
    assert scene.hears("ADDED", scene.quota(**{"requests.memory": "32Ti"})) == 0
    assert scene.hears("MODIFIED", scene.quota(used="3"), version=10) == 0
    assert scene.lists(scene.quota()) == 0
    assert scene.hurried() == []


@pytest.mark.parametrize("how", ["edited", "lines removed", "deleted", "deleted unobserved"])
def test_an_edited_resource_quota_is_restored_and_its_starting_lease_notified(scene: Scene, how: str) -> None:
    assert scene.lists(scene.quota()) == 0
    less = scene.quota()
    less["spec"]["hard"].pop("pods")
    match how:
        case "edited":
            notified = scene.hears("MODIFIED", scene.quota(pods="0"))
        case "lines removed":
            notified = scene.hears("MODIFIED", less)
        case "deleted":
            notified = scene.hears("DELETED", scene.quota())
        case _:
            notified = scene.lists()
    assert notified == 1
    assert sorted(scene.hurried()) == sorted(PROJECT_KINDS)
    assert scene.hears("ADDED", scene.quota(), version=12) == (how in ("edited", "lines removed"))
    assert scene.hurried() == []


def test_an_exhausted_or_freed_quota_notifies_its_waiting_leases(scene: Scene) -> None:
    full = scene.quota()["spec"]["hard"]["pods"]
    assert scene.hears("ADDED", scene.quota()) == 0
    assert scene.hears("MODIFIED", scene.quota(used=full)) == 1
    assert scene.hears("MODIFIED", scene.quota(used=full)) == 0
    assert scene.hears("MODIFIED", scene.quota(used="1")) == 1
    assert scene.hurried() == []


def test_a_changed_quota_notifies_restarting_leases_and_no_active_ones(scene: Scene) -> None:
    Cluster.objects.update(provisioner="simulated")
    scene.sim.run(30)
    scene.sim.sweep()
    assert reload_lease(scene.lease).state == LeaseState.ACTIVE
    assert scene.hears("DELETED", scene.quota()) == 0
    now = scene.sim.now
    with tenant_scope(scene.lease.tenant_id):
        observation_outcomes.apply_observation(
            reload_lease(scene.lease), Observation(ObservedState.LOST, "evicted", last_seen=now), now
        )
    assert scene.hears("DELETED", scene.quota(), version=10) == 1


def test_a_foreign_quota_is_neither_repaired_nor_reported(scene: Scene) -> None:
    neighbours = scene.quota(pods="0", marks={labels.INSTALLATION: "ins_2"})
    another = scene.quota(pods="0")
    another["metadata"]["name"] = "another-quota"
    nobodys = scene.quota(pods="0", marks={labels.PROJECT: ""})
    for each in (neighbours, another, nobodys):
        assert scene.hears("ADDED", each) == 0
    assert scene.hurried() == []


def test_a_quota_of_another_installation_is_not_repaired(scene: Scene) -> None:
    scene.is_of("ins_2")
    scene.hears("DELETED", scene.quota())
    assert scene.hurried() == []


def test_a_repeatedly_edited_quota_is_repaired_at_most_every_ten_seconds(scene: Scene, moments: list[float]) -> None:
    for version in (9, 10):
        scene.hears("MODIFIED", scene.quota(pods=str(version)), version=version)
        assert bool(scene.hurried()) == (version == 9)
    moments.append(drift_repair_queue.URGENT_REPEAT_AFTER_S)
    assert scene.agent.repair.queue.load_next()[1]["kind"] == "ResourceQuota"
    assert scene.agent.repair.queue.every_s == drift_repair_queue.HURRIED_PACE_S


def test_every_agent_watches_project_quotas_but_does_not_depend_on_them(agent: ClusterAgent) -> None:
    followed: dict[Kind, Any] = {each.kind: each for each in agent.reflectors}
    assert followed[QUOTAS]._labels == labels.OURS_SELECTOR
    for kind, each in followed.items():
        each.is_open = kind is not QUOTAS
    assert agent.sees_all()
