"""Health probes, examinations and inventory plausibility of clusters."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet

from broker.domain.lifecycle.states import Isolation
from broker.models import (
    Cluster,
    ClusterCredential,
    ClusterExamination,
    ClusterObject,
    ClusterWatch,
    Gpu,
    GpuHealth,
)
from broker.provisioners.kubernetes.agent.agent_heartbeat import heartbeat_ref
from broker.provisioners.kubernetes.doctor import snapshot_collection
from broker.provisioners.kubernetes.doctor.snapshot_collection import RegisteredCluster
from broker.provisioners.kubernetes.drivers.discovered_inventory import (
    DiscoveredGpu,
    DiscoveredNode,
    DiscoveredSlice,
)
from broker.provisioners.kubernetes.drivers.driver_registry import create_driver
from broker.services.clusters.health import health_probe
from broker.services.clusters.registration import cluster_examination, cluster_registration
from broker.services.inventory import gpu_catalogue
from tenants.services.errors import ProblemError
from tests.broker.provisioners.kubernetes.doctor.healthy_cluster import WELL
from tests.broker.provisioners.kubernetes.scripted_server import ScriptedAnswer, ScriptedServer, error_status
from tests.simulation import MODEL, OPERATOR, REGION, Simulation, create_fleet

KUBECONFIG = {
    "clusters": [{"name": "c", "cluster": {"server": "https://192.0.2.1:6443"}}],
    "users": [{"name": "u", "user": {"token": "t"}}],
}
Named = Callable[[str], ScriptedAnswer]


@pytest.fixture
def registered_cluster(sim: Simulation, settings: Any) -> Cluster:
    settings.CREDENTIAL_ENCRYPTION_KEYS = Fernet.generate_key().decode()
    gpu_catalogue.load_gpu_models()
    return cluster_registration.register_cluster(
        name="north",
        region=REGION,
        kubeconfig=KUBECONFIG,
        driver="device_plugin",
        actor=OPERATOR,
        now=sim.now,
    )


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ScriptedServer]]:
    """Replace the probed cluster by a scripted server."""
    with ExitStack() as running:

        def serve(*script: ScriptedAnswer) -> ScriptedServer:
            wire = running.enter_context(ScriptedServer(*script).up())
            monkeypatch.setattr(health_probe, "Transport", lambda kubeconfig: (kubeconfig(), wire.transport)[1])
            return wire

        yield serve


def kube_system(uid: str, *, version: int = 1) -> ScriptedAnswer:
    namespace = {"metadata": {"name": "kube-system", "uid": uid}}
    return ScriptedAnswer(body={"metadata": {"resourceVersion": str(version)}, "items": [namespace] if uid else []})


def fresh(cluster: Cluster) -> Cluster:
    return Cluster.objects.get(pk=cluster.pk)


def probe(cluster: Cluster, sim: Simulation) -> Cluster:
    health_probe.probe_cluster(cluster.pk, now=sim.now)
    return fresh(cluster)


def test_a_probe_stores_the_uid_of_a_cluster(
    registered_cluster: Cluster, answers: Callable[..., ScriptedServer], sim: Simulation
) -> None:
    answers(kube_system("uid-1"))
    seen = probe(registered_cluster, sim)
    assert (seen.uid, seen.unreachable_since) == ("uid-1", None)
    assert probe(registered_cluster, sim).version == seen.version
    assert health_probe.clusters_to_probe() == [registered_cluster.pk]


def test_a_cluster_with_a_fresh_agent_heartbeat_is_not_probed(
    registered_cluster: Cluster, answers: Callable[..., ScriptedServer], sim: Simulation
) -> None:
    wire, ref = answers(kube_system("uid-1")), heartbeat_ref(registered_cluster.pk)
    ClusterObject.objects.create(
        cluster=registered_cluster, kind="ConfigMap", namespace=ref.namespace, name=ref.name, version=1, seen_at=sim.now
    )
    assert probe(registered_cluster, sim).uid == "uid-1"  # who it is must be known first
    probe(registered_cluster, sim)
    assert len(wire.requests) == 1
    sim.clock.at += timedelta(seconds=21)
    probe(registered_cluster, sim)
    assert len(wire.requests) == 2


def test_an_outage_lasts_from_the_first_failed_probe_to_a_successful_one(
    registered_cluster: Cluster, answers: Callable[..., ScriptedServer], sim: Simulation
) -> None:
    answers(error_status(403, "forbidden"))
    began = sim.now
    assert probe(registered_cluster, sim).unreachable_since == began
    sim.clock.at += timedelta(seconds=15)
    silent = probe(registered_cluster, sim)
    assert (silent.unreachable_since, silent.unreachable_reason) == (began, "forbidden")
    answers(kube_system("uid-1"))
    back = probe(registered_cluster, sim)
    assert (back.unreachable_since, back.unreachable_reason) == (None, "")


def test_a_different_cluster_uid_marks_the_cluster_unreachable(
    registered_cluster: Cluster, answers: Callable[..., ScriptedServer], sim: Simulation
) -> None:
    Cluster.objects.update(uid="uid-1")
    answers(kube_system("uid-2"))
    seen = probe(registered_cluster, sim)
    assert seen.unreachable_since is not None
    assert "another cluster" in seen.unreachable_reason
    assert seen.uid == "uid-1"


def test_a_probe_freezes_a_cluster_that_was_restored_to_an_older_state(
    registered_cluster: Cluster, answers: Callable[..., ScriptedServer], sim: Simulation
) -> None:
    """Watches ahead of an older state hear nothing."""
    Cluster.objects.update(uid="uid-1")
    ClusterWatch.objects.create(
        cluster=registered_cluster, kind="Pod", version=120, last_event_at=sim.now, synced_at=sim.now
    )
    answers(kube_system("uid-1", version=120))
    assert not probe(registered_cluster, sim).frozen
    answers(kube_system("uid-1", version=119))
    seen = probe(registered_cluster, sim)
    assert "its state is older" in seen.frozen
    assert seen.unreachable_since == sim.now


def test_a_cluster_without_kube_system_is_reported_as_another_cluster(
    registered_cluster: Cluster, answers: Callable[..., ScriptedServer], sim: Simulation
) -> None:
    Cluster.objects.update(uid="uid-1")
    answers(kube_system(""))
    assert "another cluster" in probe(registered_cluster, sim).unreachable_reason


def test_a_requested_examination_is_run_by_a_worker_and_stored(
    registered_cluster: Cluster, sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = []
    monkeypatch.setattr(
        snapshot_collection,
        "collect_snapshot",
        lambda kubeconfig, driver, **rest: (known.append(rest["known"]), WELL)[1],
    )
    cluster_examination.request_examination(registered_cluster, actor=OPERATOR, now=sim.now)
    assert ("broker.examine_cluster", registered_cluster.pk) in {hint[2:4] for hint in sim.messages}
    assert ClusterExamination.objects.get().done_at is None
    cluster_examination.run_examination(registered_cluster.pk, now=sim.now)
    done = ClusterExamination.objects.get()
    assert (done.asked_by, done.done_at) == (OPERATOR.label, sim.now)
    assert len(json.loads(json.dumps(done.findings))) > 40
    assert known[0].orders == frozenset()


def test_a_kubeconfig_is_examined_before_registration(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu_catalogue.load_gpu_models()
    known = []
    monkeypatch.setattr(
        snapshot_collection,
        "collect_snapshot",
        lambda kubeconfig, driver, **rest: (known.append(rest["known"]), WELL)[1],
    )
    driver = create_driver("device_plugin", {}, cluster_examination.known_gpu_models())
    assert len(cluster_examination.examine_kubeconfig(KUBECONFIG, driver=driver, now=sim.now)) > 40
    assert known == [RegisteredCluster()]


def test_an_examination_without_credentials_has_one_finding(registered_cluster: Cluster, sim: Simulation) -> None:
    ClusterCredential.objects.all().delete()
    (only,) = cluster_examination.examine_cluster(registered_cluster, now=sim.now)
    assert (only.name, only.outcome) == ("reachable", "bad")
    assert "an operator must add them" in only.seen


def test_examining_a_simulated_cluster_is_refused(sim: Simulation) -> None:
    create_fleet()
    with pytest.raises(ProblemError, match="simulated"):
        cluster_examination.request_examination(Cluster.objects.get(), actor=OPERATOR, now=sim.now)


def nodes(count: int, gpus: int = 8) -> list[DiscoveredNode]:
    whole = (DiscoveredSlice(0, 8, "whole-gpu"),)
    return [
        DiscoveredNode(
            f"n{number}",
            tuple(DiscoveredGpu(index, f"n{number}/{index}", MODEL, Isolation.DEVICE, whole) for index in range(gpus)),
        )
        for number in range(count)
    ]


def healthy() -> int:
    return Gpu.objects.filter(health=GpuHealth.HEALTHY).count()


def test_a_suddenly_empty_inventory_is_not_applied(registered_cluster: Cluster, sim: Simulation) -> None:
    cluster_registration.update_inventory(registered_cluster, nodes(4), now=sim.now)
    (why,) = cluster_registration.update_inventory(registered_cluster, [], now=sim.now)
    assert "0 of 32" in why
    assert (healthy(), fresh(registered_cluster).inventory_paused_reason) == (32, why)
    cluster_registration.update_inventory(registered_cluster, nodes(4), now=sim.now)
    assert fresh(registered_cluster).inventory_paused_reason == ""


def test_a_single_node_may_disappear_and_return(registered_cluster: Cluster, sim: Simulation) -> None:
    cluster_registration.update_inventory(registered_cluster, nodes(2), now=sim.now)
    cluster_registration.update_inventory(registered_cluster, nodes(1), now=sim.now)
    assert healthy() == 8
    cluster_registration.update_inventory(registered_cluster, nodes(2), now=sim.now)
    assert healthy() == 16


def test_an_operator_may_accept_missing_gpus(registered_cluster: Cluster, sim: Simulation) -> None:
    cluster_registration.update_inventory(registered_cluster, nodes(4), now=sim.now)
    cluster_registration.update_inventory(registered_cluster, nodes(1), now=sim.now)
    assert healthy() == 32
    cluster_registration.accept_missing_inventory(
        registered_cluster, why="the rack was sold", actor=OPERATOR, now=sim.now
    )
    cluster_registration.update_inventory(registered_cluster, nodes(1), now=sim.now)
    assert healthy() == 8
    assert (fresh(registered_cluster).accept_next_inventory, fresh(registered_cluster).inventory_paused_reason) == (
        False,
        "",
    )
