"""Order, rate and scope of drift repair."""

from base64 import b64decode
from dataclasses import replace
from typing import Any

import pytest
from django.conf import LazySettings

from broker.domain.lifecycle.states import LeaseState
from broker.models import Cluster, ClusterObject, Lease
from broker.provisioners.base import spec_name
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.agent import agent_heartbeat
from broker.provisioners.kubernetes.client.transport import Transport
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection
from broker.provisioners.kubernetes.drivers.base import UnsupportedSpec
from broker.provisioners.kubernetes.drivers.device_plugin import DevicePluginDriver
from broker.services.clusters import drift_repair_queue
from broker.services.clusters.agent.cluster_agent import ClusterAgent
from broker.services.clusters.drift_repair_queue import DriftRepairQueue
from tests.broker.domain.fleet import MODELS
from tests.broker.provisioners.kubernetes.scripted_server import StartServer
from tests.broker.services.clusters.test_cluster_agent import reconnect
from tests.broker.services.secrets.saved_secrets import VALUE, save_secret
from tests.simulation import Simulation, TenantContext, offering

PROJECT_KINDS = ["Namespace", "ServiceAccount", "ResourceQuota", "LimitRange", *["NetworkPolicy"] * 3]


def create_repair_queue(installation: str = "ins_1") -> DriftRepairQueue:
    Cluster.objects.update(provisioner="kubernetes", domain="leases.example", ingress="ingress/public")
    way = ClusterConnection(
        Transport(dict), DevicePluginDriver(MODELS), installation, allowed_namespaces=lambda: ("edge",)
    )
    return DriftRepairQueue(Cluster.objects.get().pk, way)


def store_anchor(lease: Lease, **meta: Any) -> None:
    """Store the anchor of a lease as the agent observed it."""
    marks = {
        labels.TENANT: lease.tenant_id,
        labels.PROJECT: lease.project_id,
        labels.LEASE: lease.pk,
        labels.INSTALLATION: "ins_1",
    }
    name = spec_name(lease.pk, lease.generation)
    ClusterObject.objects.create(
        cluster=Cluster.objects.get(),
        kind="ConfigMap",
        namespace="gt-x",
        name=name,
        uid=f"u-{name}",
        version=1,
        spec_name=name,
        body={"metadata": {"name": name, "labels": marks, **meta}},
        seen_at=lease.created_at,
    )


def kinds(found: list[dict[str, Any]]) -> list[str]:
    return [each["kind"] for each in found]


def test_project_and_connection_objects_are_repaired_every_ten_minutes(
    sim: Simulation, kestrel: TenantContext, moments: list[float]
) -> None:
    lease = sim.create_lease(kestrel, offering(), workload="jupyter")
    store_anchor(lease)
    walk = create_repair_queue()
    assert kinds(walk.load_next()) == PROJECT_KINDS
    connection_objects = walk.load_next()
    assert kinds(connection_objects) == ["Ingress", "Secret", "Service"], "never what makes pods"
    assert {each["metadata"]["ownerReferences"][0]["uid"] for each in connection_objects} == {
        f"u-{spec_name(lease.pk, lease.generation)}"
    }
    assert walk.load_next() == []
    moments.append(drift_repair_queue.REPEAT_AFTER_S - 1)
    assert walk.load_next() == []
    moments.append(1)
    found = {tuple(kinds(walk.load_next())) for _ in range(2)}
    assert found == {tuple(PROJECT_KINDS), ("Ingress", "Secret", "Service")}


def test_project_objects_are_repaired_once_for_several_leases(
    sim: Simulation, kestrel: TenantContext, moments: list[float]
) -> None:
    for _ in range(2):
        store_anchor(sim.create_lease(kestrel, offering(), workload="jupyter"))
    walk = create_repair_queue()
    found = [tuple(kinds(walk.load_next())) for _ in range(4)]
    assert (found.count(tuple(PROJECT_KINDS)), found.count(("Ingress", "Secret", "Service"))) == (1, 2)
    assert found[-1] == ()


def test_terminating_or_foreign_objects_are_not_repaired(
    sim: Simulation, kestrel: TenantContext, moments: list[float]
) -> None:
    lease = sim.create_lease(kestrel, offering())
    store_anchor(lease, deletionTimestamp="2026-11-21T09:00:00Z")
    assert create_repair_queue().load_next() == []
    ClusterObject.objects.all().delete()
    store_anchor(lease)
    assert create_repair_queue("ins_2").load_next() == []


def test_a_lease_without_readable_secrets_keeps_its_secret_in_the_cluster(
    sim: Simulation, kestrel: TenantContext, moments: list[float], settings: LazySettings
) -> None:
    secret = save_secret(kestrel)
    store_anchor(sim.create_lease(kestrel, offering(), workload="jupyter", secrets={"HF_TOKEN": secret.pk}))
    walk = create_repair_queue()
    (applied,) = (each for each in [*walk.load_next(), *walk.load_next()] if each["kind"] == "Secret")
    assert b64decode(applied["data"]["env.HF_TOKEN"]).decode() == VALUE
    settings.CREDENTIAL_ENCRYPTION_KEYS = ""
    walk = create_repair_queue()
    assert [kinds(walk.load_next()) for _ in range(2)] == [PROJECT_KINDS, ["Ingress", "Service"]]


def test_only_active_leases_have_connection_objects_repaired(
    sim: Simulation, kestrel: TenantContext, moments: list[float]
) -> None:
    lease = sim.create_lease(kestrel, offering(), LeaseState.PROVISIONING, workload="jupyter")
    store_anchor(lease)
    walk = create_repair_queue()
    assert [kinds(walk.load_next()) for _ in range(2)] == [PROJECT_KINDS, []]


def test_an_anchor_of_another_generation_has_no_objects_repaired(
    sim: Simulation, kestrel: TenantContext, moments: list[float]
) -> None:
    store_anchor(sim.create_lease(kestrel, offering(), workload="jupyter"))
    ClusterObject.objects.update(spec_name="l-another-g1")
    walk = create_repair_queue()
    assert [kinds(walk.load_next()) for _ in range(2)] == [PROJECT_KINDS, []]


def test_lease_objects_that_cannot_be_rendered_are_not_repaired(
    sim: Simulation, kestrel: TenantContext, moments: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unfit(*_: Any, **__: Any) -> None:
        raise UnsupportedSpec("no such slice")

    monkeypatch.setattr(drift_repair_queue, "lease_objects", unfit)
    store_anchor(sim.create_lease(kestrel, offering(), workload="jupyter"))
    walk = create_repair_queue()
    assert [kinds(walk.load_next()) for _ in range(2)] == [PROJECT_KINDS, []]


def test_a_hurried_drift_repair_restarts_and_then_slows_down_again(
    sim: Simulation, kestrel: TenantContext, moments: list[float]
) -> None:
    store_anchor(sim.create_lease(kestrel, offering(), workload="jupyter"))
    walk = create_repair_queue()
    while walk.load_next():
        pass
    walk.hurry()
    assert (bool(walk.load_next()), walk.every_s) == (True, drift_repair_queue.HURRIED_PACE_S)
    while walk.load_next():
        pass
    assert walk.every_s == drift_repair_queue.PACE_S


def test_repairs_and_heartbeats_write_less_than_once_a_second() -> None:
    assert 1 / drift_repair_queue.PACE_S + 1 / agent_heartbeat.EVERY_S <= 0.7


def test_an_agent_repairs_one_subject_at_a_time_only_in_a_fully_observed_cluster(
    agent: ClusterAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [["first"], ["second"], [], ["third"]]
    monkeypatch.setattr(agent.repair.queue, "load_next", lambda: turns.pop(0))
    monkeypatch.setattr(agent, "sees_all", lambda: True)
    waiting = agent.repair.repairer._waiting

    def turned() -> list[Any]:
        agent._repair_next()
        return list(waiting)

    assert turned() == [], "nothing vouches for the cluster yet"
    agent.heartbeat.beats = 1
    assert (turned(), turned()) == (["first"], ["first"]), "the first is not done"
    waiting.clear()
    assert turned() == ["second"]
    waiting.clear()
    assert turned() == []
    agent.identity.frozen = True
    assert turned() == []
    agent.identity.frozen, agent.identity.suspicion = False, "another cluster responds"
    assert turned() == []
    agent.identity.suspicion = ""
    monkeypatch.setattr(agent, "sees_all", lambda: False)
    assert turned() == []


def test_changed_ingress_settings_speed_up_drift_repair(
    agent: ClusterAgent, serve: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reconnect(agent, replace(agent.connection, transport=serve().transport))
    agent.inventory.due_at = float("inf")
    agent.run_turn(0)
    assert agent.repair.queue.every_s == drift_repair_queue.PACE_S
    Cluster.objects.update(allowed_namespaces="edge")
    agent.run_turn(0)
    assert agent.repair.queue.every_s == drift_repair_queue.PACE_S, "it looks every few seconds"
    agent._check_at = 0.0
    agent.run_turn(0)
    assert agent.repair.queue.every_s == drift_repair_queue.HURRIED_PACE_S
