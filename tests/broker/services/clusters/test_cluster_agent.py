"""Events, inventory and leadership of the cluster agent."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from broker.domain.geometry.host_resources import HostResources
from broker.management.cluster_lookup import find_cluster
from broker.models import Cluster, ClusterObject, ClusterWatch, Gpu, GpuModel, Node, Offering, OfferingState
from broker.provisioners.kubernetes import cluster_connection as clusters
from broker.provisioners.kubernetes.agent.agent_heartbeat import BEAT_ANNOTATION
from broker.provisioners.kubernetes.agent.event_buffer import WatchEvent
from broker.provisioners.kubernetes.client.kinds import CONFIG_MAP, NODE, POD, RESOURCE_SLICE, Kind
from broker.provisioners.kubernetes.client.objects import ClusterObjectHeader, FullObjectMeta, Raw
from broker.services.clusters.agent import cluster_agent, inventory_watch, leadership
from broker.services.clusters.agent.cluster_agent import ClusterAgent
from broker.services.clusters.agent.watched_kinds import DEVICE_CLASSES, WATCHED_KINDS
from broker.services.clusters.health import cluster_freeze
from broker.services.clusters.registration import cluster_registration
from broker.services.inventory import gpu_catalogue
from broker.services.inventory.device_losses import SOME_MISSING
from ports import clock
from tests.broker.provisioners.kubernetes.scripted_server import (
    ScriptedAnswer,
    ScriptedServer,
    StartServer,
    error_status,
)
from tests.simulation import NOW, OPERATOR, Simulation, create_gpus


def node(name: str = "n01", ready: str = "True", version: int = 3, **allocatable: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "uid": f"u-{name}",
            "resourceVersion": str(version),
            "labels": {
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                "nvidia.com/gpu.count": "1",
                "nvidia.com/gpu.memory": "81559",
                "nvidia.com/gpu.replicas": "1",
                "nvidia.com/mig.strategy": "mixed",
            },
        },
        "status": {
            "allocatable": {"nvidia.com/gpu": "1", **allocatable},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def found(kind: Kind, how: str, *objects: dict[str, Any], version: int = 9) -> WatchEvent:
    return WatchEvent(kind, how, [Raw(msgspec.json.encode(each)) for each in objects], version)


def pod(version: int = 5) -> dict[str, Any]:
    marks = {"gpubroker.dev/lease": "lse_1", "gpubroker.dev/tenant": "ten_1", "gpubroker.dev/generation": "2"}
    meta = {"name": "p", "namespace": "gt-1", "uid": "u", "resourceVersion": str(version), "labels": marks}
    return {"metadata": meta, "status": {"phase": "Running"}}


def test_changes_before_and_after_a_list_are_applied_in_order(agent: ClusterAgent, sim: Simulation) -> None:
    batch = [
        found(POD, "ADDED", pod(5), version=5),
        found(POD, "BEGUN"),
        found(POD, "LISTED", version=6),
        found(POD, "ADDED", pod(8), version=8),
        found(POD, "HEARD", version=12),
    ]
    agent.absorb(batch, now=sim.now)
    kept = ClusterObject.objects.get()
    assert (kept.spec_name, kept.version, kept.body["status"]["phase"]) == ("l-1-g2", 8, "Running")
    assert ClusterWatch.objects.get().version == 12
    agent.absorb([found(POD, "DELETED", pod(13), version=13)], now=sim.now)
    assert not ClusterObject.objects.exists()


def test_a_change_in_unused_fields_is_not_stored(agent: ClusterAgent, sim: Simulation) -> None:
    def seen(how: str, version: int, **more: Any) -> tuple[int, str]:
        agent.absorb([found(POD, how, {**pod(version), **more}, version=version)], now=sim.now)
        kept = ClusterObject.objects.get()
        return kept.version, kept.body["status"]["phase"]

    assert seen("ADDED", 5) == (5, "Running")
    assert seen("MODIFIED", 6) == (5, "Running")  # an annotation changed
    assert ClusterWatch.objects.get().version == 6
    assert seen("MODIFIED", 7, status={"phase": "Failed"}) == (7, "Failed")
    agent.absorb([found(POD, "DELETED", pod(8), version=8)], now=sim.now)
    assert seen("ADDED", 9, status={"phase": "Failed"}) == (9, "Failed")


def test_nul_characters_in_a_pod_status_are_removed(agent: ClusterAgent, sim: Simulation) -> None:
    """One pod's NUL must not stop the others' observation."""
    words, kept = "over\0 \\u0000", "over \\u0000"
    said = {"message": words}
    state = {"state": {"terminated": said}, "lastState": {"waiting": said}}
    status = {"phase": "Failed", **said, "conditions": [said], "containerStatuses": [state]}
    agent.absorb([found(POD, "ADDED", {**pod(5), "status": status}, version=5)], now=sim.now)
    seen = ClusterObject.objects.get().body["status"]
    (container,) = seen["containerStatuses"]
    assert seen["message"] == seen["conditions"][0]["message"] == kept
    assert container["state"]["terminated"]["message"] == container["lastState"]["waiting"]["message"] == kept


def test_a_list_does_not_rewrite_known_objects(agent: ClusterAgent, sim: Simulation) -> None:
    def listed(version: int, *there: dict[str, Any]) -> dict[str, int]:
        begun, paged = found(POD, "BEGUN"), found(POD, "PAGED", *there, version=version)
        agent.absorb([begun, paged, found(POD, "LISTED", version=version)], now=sim.now)
        return dict(ClusterObject.objects.values_list("name", "version"))

    other = {**pod(5), "metadata": {**pod(5)["metadata"], "name": "q"}}
    assert listed(5, pod(5), other) == {"p": 5, "q": 5}
    assert listed(7, pod(6)) == {"p": 5}
    assert listed(9, pod(6), other) == {"p": 5, "q": 5}  # it went and came back


def test_a_silent_or_deleted_node_is_lost_until_it_reports(agent: ClusterAgent, sim: Simulation) -> None:
    create_gpus(1)
    Node.objects.update(cluster=agent.cluster)

    def state(*batch: WatchEvent) -> str:
        agent.absorb(batch, now=sim.now)
        return Node.objects.get().state

    assert state(found(NODE, "BEGUN"), found(NODE, "PAGED", node()), found(NODE, "LISTED")) == "ready"
    assert state(found(NODE, "MODIFIED", node(ready="Unknown", version=10))) == "lost"
    agent.nodes.check_lost(now=sim.now)
    assert Node.objects.get().state == "lost"
    ClusterObject.objects.update(body=node())
    agent.nodes.check_lost(now=sim.now)
    assert Node.objects.get().state == "ready"
    assert state(found(NODE, "DELETED", node(version=11))) == "lost"
    assert state(found(NODE, "ADDED", node(version=12))) == "ready"


def listing(*objects: dict[str, Any]) -> ScriptedAnswer:
    return ScriptedAnswer(body={"metadata": {"resourceVersion": "5"}, "items": list(objects)})


def reconnect(agent: ClusterAgent, connection: clusters.ClusterConnection) -> None:
    """Replace the connection of every part of the agent."""
    for part in (agent, agent.identity, agent.objects, agent.inventory):
        part.connection = connection


def connect_to(agent: ClusterAgent, serve: StartServer, *script: ScriptedAnswer) -> ScriptedServer:
    """Connect the agent to a scripted server."""
    wire = serve(*script)
    reconnect(agent, clusters.ClusterConnection(wire.transport, agent.connection.driver))
    return wire


def nodes(*there: dict[str, Any]) -> list[WatchEvent]:
    return [found(NODE, "BEGUN"), found(NODE, "PAGED", *there), found(NODE, "LISTED")]


def test_the_inventory_is_built_from_observed_nodes_without_requests(
    agent: ClusterAgent, serve: StartServer, sim: Simulation
) -> None:
    wire = connect_to(agent, serve)
    agent.run_turn(0)
    assert not Gpu.objects.exists()
    agent.absorb(nodes(node()), now=sim.now)
    agent.run_turn(0)
    assert Gpu.objects.get().node.name == "n01"
    assert wire.requests == []  # the watch has delivered everything


def test_what_daemon_sets_request_is_taken_off_their_nodes_amounts(
    agent: ClusterAgent, serve: StartServer, sim: Simulation
) -> None:
    owner = {"kind": "DaemonSet", "name": "exporter", "controller": True}
    daemon_pod = {
        "metadata": {"name": "exporter-x", "namespace": "monitoring", "ownerReferences": [owner]},
        "spec": {"nodeName": "n01", "containers": [{"resources": {"requests": {"cpu": "3"}}}]},
    }
    connect_to(agent, serve)
    agent.foreign.changed(POD, "ADDED", Raw(msgspec.json.encode(daemon_pod)), 4)
    agent.absorb(nodes(node(cpu="16", memory="64Gi")), now=sim.now)
    agent.run_turn(0)
    assert Node.objects.get().cpu_milli == 13_000


def test_the_inventory_is_taken_every_ten_seconds_while_leases_are_examined(
    agent: ClusterAgent, serve: StartServer, sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect_to(agent, serve)
    agent.absorb(nodes(node()), now=sim.now)
    agent.run_turn(0)
    Gpu.objects.update(health="unhealthy", health_reason=SOME_MISSING)
    taken: list[int] = []
    monkeypatch.setattr(
        cluster_registration, "update_inventory", lambda cluster, found, now: taken.append(len(found)) or []
    )
    for _ in range(2):
        agent.take_inventory(now=sim.now)
    assert (taken, agent.inventory.is_due(clock.monotonic() + 11)) == ([1, 1], True)


def test_an_unchanged_inventory_is_not_stored_again(
    agent: ClusterAgent, serve: StartServer, sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect_to(agent, serve)
    taken: list[int] = []
    monkeypatch.setattr(
        cluster_registration, "update_inventory", lambda cluster, found, now: taken.append(len(found)) or []
    )

    def take(*there: dict[str, Any]) -> int:
        agent.absorb(nodes(*there), now=sim.now)
        agent.take_inventory(now=sim.now)
        return len(taken)

    assert take(node()) == 1
    assert take(node(version=4)) == 1
    assert take(node(version=5), node("n02")) == 2
    Cluster.objects.update(inventory_paused_reason="It reports only 1 of 9 GPUs.")
    assert take(node(version=6), node("n02")) == 3
    Cluster.objects.update(inventory_paused_reason="")
    agent.inventory._repeat_at = 0
    assert take(node(version=7), node("n02")) == 4


def test_an_unlisted_gpu_product_is_stored_with_a_model_of_its_own(
    agent: ClusterAgent, serve: StartServer, sim: Simulation
) -> None:
    strange = node()
    strange["metadata"]["labels"]["nvidia.com/gpu.product"] = "NVIDIA-Z9"
    connect_to(agent, serve)
    agent.absorb(nodes(strange), now=sim.now)
    agent.run_turn(0)
    models = {gpu.gpu_model for gpu in Gpu.objects.select_related("gpu_model")}
    assert [(model.name, model.memory_gb, model.discovered) for model in models] == [("Z9-80GB", 80, True)]
    assert gpu_catalogue.gpu_model_spec("Z9-80GB").label == "Z9 80GB"
    gpu_catalogue.load_gpu_models()
    assert GpuModel.objects.filter(name="Z9-80GB").exists()


def test_a_gpu_product_without_memory_adds_no_inventory_and_says_why(
    agent: ClusterAgent, serve: StartServer, sim: Simulation
) -> None:
    strange = node()
    strange["metadata"]["labels"] |= {"nvidia.com/gpu.product": "NVIDIA-Z9", "nvidia.com/gpu.memory": "0"}
    connect_to(agent, serve)
    agent.absorb(nodes(strange), now=sim.now)
    agent.run_turn(0)
    assert not Gpu.objects.exists()
    assert "set the node label nvidia.com/gpu.memory" in Node.objects.get().inventory_problem


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"spec": {"unschedulable": True}}, "It is cordoned in its cluster"),
        (
            {"spec": {"taints": [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}]}},
            "the taint sku=gpu:NoSchedule",
        ),
        (
            {"status": {"conditions": [{"type": "Ready", "status": "False", "message": "PLEG is not healthy"}]}},
            "It is not ready: PLEG is not healthy",
        ),
        ({"status": {"conditions": []}}, "its kubelet has not reported yet"),
        ({"metadata": {"deletionTimestamp": "2026-07-01T12:00:00Z"}}, "It is being deleted"),
    ],
)
def test_a_node_that_refuses_pods_is_out_of_sale_until_it_takes_them(
    agent: ClusterAgent, serve: StartServer, sim: Simulation, changes: dict[str, dict[str, Any]], why: str
) -> None:
    connect_to(agent, serve)
    agent.absorb(nodes(node()), now=sim.now)
    agent.run_turn(0)
    gpus = Gpu.objects.sellable().count()
    assert gpus > 0
    refusing = node(version=10)
    for part, values in changes.items():
        refusing[part] = {**refusing.get(part, {}), **values}
    agent.absorb([found(NODE, "MODIFIED", refusing, version=10)], now=sim.now)
    agent.run_turn(2)
    assert why in Node.objects.get().unschedulable_reason
    assert Gpu.objects.sellable().count() == 0
    agent.absorb([found(NODE, "MODIFIED", node(version=11), version=11)], now=sim.now)
    agent.run_turn(4)
    assert (Node.objects.get().unschedulable_reason, Gpu.objects.sellable().count()) == ("", gpus)


def test_a_node_repartitioned_by_hand_is_read_again_within_two_seconds(
    agent: ClusterAgent, serve: StartServer, sim: Simulation
) -> None:
    connect_to(agent, serve)
    agent.absorb(nodes(node()), now=sim.now)
    agent.run_turn(0)
    assert not agent.inventory.is_due(clock.monotonic() + 2)
    agent.absorb([found(NODE, "MODIFIED", node(version=9), version=9)], now=sim.now)
    assert not agent.inventory.is_due(clock.monotonic() + 2)  # only its heartbeat changed
    cut = node(version=10)
    cut["status"]["allocatable"] = {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "7"}
    agent.absorb([found(NODE, "MODIFIED", cut, version=10)], now=sim.now)
    assert agent.inventory.is_due(clock.monotonic() + 2)
    agent.take_inventory(now=sim.now)
    assert [len(gpu.fixed_layout) for gpu in Gpu.objects.all()] == [7]


def test_the_amounts_of_a_node_are_stored_and_checked_against_offerings(
    agent: ClusterAgent, serve: StartServer, sim: Simulation
) -> None:
    connect_to(agent, serve)
    agent.absorb(nodes(node(cpu="3920m", memory="14719096Ki")), now=sim.now)
    agent.run_turn(0)
    assert Node.objects.get().host_resources == HostResources(3420, 13_350, 0)
    assert Gpu.objects.sellable().count() == 1
    gpu_catalogue.derive_offerings(now=sim.now)
    Offering.objects.update(state=OfferingState.PUBLISHED)
    agent.absorb([found(NODE, "MODIFIED", node(version=10, cpu="3", memory="14719096Ki"), version=10)], now=sim.now)
    agent.run_turn(2)
    assert "whole GPU promises 3.4 CPUs, this node has 2.5 CPUs" in Node.objects.get().resource_shortage
    assert Gpu.objects.sellable().count() == 0
    agent.absorb([found(NODE, "MODIFIED", node(version=11, cpu="4", memory="14719096Ki"), version=11)], now=sim.now)
    agent.run_turn(4)
    assert (Node.objects.get().resource_shortage, Gpu.objects.sellable().count()) == ("", 1)


def test_a_tolerated_taint_keeps_a_node_in_sale(agent: ClusterAgent, serve: StartServer, sim: Simulation) -> None:
    Cluster.objects.filter(pk=agent.cluster.pk).update(tolerations="sku=gpu:NoSchedule")
    connect_to(agent, serve)
    tainted = node()
    tainted["spec"] = {"taints": [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}]}
    agent.absorb(nodes(tainted), now=sim.now)
    agent.run_turn(0)
    assert Node.objects.get().unschedulable_reason == ""
    assert Gpu.objects.sellable().exists()


def test_the_inventory_is_kept_when_the_cluster_identity_cannot_be_read(
    agent: ClusterAgent, serve: StartServer, sim: Simulation
) -> None:
    connect_to(agent, serve)
    agent.absorb(nodes(node()), now=sim.now)
    agent.run_turn(0)
    Cluster.objects.update(uid="uid-1")
    connect_to(agent, serve, error_status(403, "forbidden"))
    agent.absorb(nodes(), now=sim.now)
    agent.identity.uid, agent.inventory.due_at = "uid-1", 0
    agent.run_turn(0)
    assert Gpu.objects.get().health == "healthy"
    assert not agent.frozen
    kube_system = {"metadata": {"name": "kube-system", "uid": "uid-2"}}
    connect_to(agent, serve, listing(kube_system))
    agent.take_inventory(now=sim.now)
    assert agent.frozen


def published(version: int, *gpus: str) -> dict[str, Any]:
    """Return the resource slice that the DRA driver of n01 publishes."""
    devices = [
        {
            "name": name,
            "attributes": {
                "type": {"string": "gpu"},
                "uuid": {"string": f"GPU-{name}"},
                "productName": {"string": "NVIDIA H100 80GB HBM3"},
            },
            "capacity": {"memory": {"value": "81559Mi"}},
        }
        for name in gpus
    ]
    meta = {"name": "slice-n01", "uid": "u-slice", "resourceVersion": str(version)}
    return {"metadata": meta, "spec": {"driver": "gpu.nvidia.com", "nodeName": "n01", "devices": devices}}


def test_a_dra_cluster_builds_its_inventory_from_watched_resource_slices(
    agent: ClusterAgent, serve: StartServer, sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert RESOURCE_SLICE not in {each.kind for each in agent.reflectors}
    Cluster.objects.update(driver="dra")
    claims = ClusterAgent(Cluster.objects.get())
    assert RESOURCE_SLICE in {each.kind for each in claims.reflectors}
    wire = serve()
    reconnect(claims, clusters.ClusterConnection(wire.transport, claims.connection.driver))
    monkeypatch.setattr(inventory_watch, "INVENTORY_DELAY_S", 0.0)

    def gpus(*batch: WatchEvent) -> list[str]:
        claims.absorb(batch, now=sim.now)
        claims.run_turn(0)
        return list(Gpu.objects.order_by("index").values_list("uuid", flat=True))

    assert gpus(*nodes(node())) == []  # their GPUs are yet to be listed
    listed = [
        found(RESOURCE_SLICE, "BEGUN"),
        found(RESOURCE_SLICE, "PAGED", published(4, "gpu-0")),
        found(RESOURCE_SLICE, "LISTED"),
    ]
    assert gpus(*listed) == ["GPU-gpu-0"]
    assert gpus(found(RESOURCE_SLICE, "MODIFIED", published(12, "gpu-0", "gpu-1"), version=12)) == [
        "GPU-gpu-0",
        "GPU-gpu-1",
    ]
    gpus(found(RESOURCE_SLICE, "DELETED", published(13, "gpu-0", "gpu-1"), version=13))
    assert set(Gpu.objects.values_list("health", flat=True)) == {"unhealthy"}
    assert wire.requests == []


def a_class(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"u-{name}", "resourceVersion": str(version)}}


def test_a_profile_without_a_device_class_is_not_sold_until_it_has_one(
    agent: ClusterAgent, serve: StartServer, sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the right to list them, they count as present."""
    Cluster.objects.update(driver="dra")
    claims = ClusterAgent(Cluster.objects.get())
    reconnect(claims, clusters.ClusterConnection(serve().transport, claims.connection.driver))
    monkeypatch.setattr(inventory_watch, "INVENTORY_DELAY_S", 0.0)

    def sold(*batch: WatchEvent) -> list[Any]:
        claims.absorb(batch, now=sim.now)
        claims.run_turn(0)
        return [gpu.published or gpu.health for gpu in Gpu.objects.all()]

    slices = published(4, "gpu-0")
    part = {
        "type": {"string": "mig"},
        "parentUUID": {"string": "GPU-gpu-0"},
        "profile": {"string": "1g.10gb"},
    }
    slices["spec"]["devices"].append({"name": "p", "attributes": part, "capacity": {"memorySlice3": {"value": "1"}}})
    sold(*nodes(node()))
    listed = [found(RESOURCE_SLICE, "BEGUN"), found(RESOURCE_SLICE, "PAGED", slices), found(RESOURCE_SLICE, "LISTED")]
    assert sold(*listed) == [{"1g.10gb": [3], "whole-gpu": [0]}]
    whole = a_class("gpu.nvidia.com", 5)
    listed = [
        found(DEVICE_CLASSES, "BEGUN"),
        found(DEVICE_CLASSES, "PAGED", whole),
        found(DEVICE_CLASSES, "LISTED"),
    ]
    assert sold(*listed) == [{"whole-gpu": [0]}]
    mine = a_class("mig-1g.10gb.gpubroker.dev", 12)
    assert sold(found(DEVICE_CLASSES, "ADDED", mine, version=12)) == [{"1g.10gb": [3], "whole-gpu": [0]}]
    assert sold(found(DEVICE_CLASSES, "DELETED", mine, version=13)) == [{"whole-gpu": [0]}]


def test_frequent_node_changes_update_the_inventory_once_per_interval(
    agent: ClusterAgent, serve: StartServer, sim: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect_to(agent, serve)
    moment, taken = [1000.0], []
    monkeypatch.setattr(cluster_agent.clock, "monotonic", lambda: moment[0])
    monkeypatch.setattr(
        cluster_registration, "update_inventory", lambda cluster, found, now: taken.append(len(found)) or []
    )
    agent.absorb(nodes(node()), now=sim.now)
    agent.run_turn(0)
    for number in range(2, 5):
        moment[0] += 0.2
        agent.absorb([found(NODE, "ADDED", node(f"n0{number}", version=number + 9))], now=sim.now)
        agent.run_turn(0)
    assert taken == [1]
    moment[0] += 0.5
    agent.run_turn(0)
    assert taken == [1, 4]


class EndedThread:
    """A thread that ends at once, as after an unexpected error."""

    beats, is_open, is_idle, kind = 0, False, True, POD

    def follow(self, going: object) -> None:
        """End at once."""


def test_the_agent_ends_on_a_stop_request(agent: ClusterAgent, serve: StartServer) -> None:
    connect_to(agent, serve)
    requests: list[bool] = []
    agent.reflectors = []
    agent.heartbeat = agent.repair.repairer = EndedThread()  # type: ignore[assignment]
    agent.follow(lambda: requests.append(True) or len(requests) < 2)  # type: ignore[func-returns-value]


def test_an_agent_whose_watch_ended_raises_an_error(agent: ClusterAgent, serve: StartServer) -> None:
    connect_to(agent, serve)

    agent.reflectors = [EndedThread()]  # type: ignore[list-item]
    with pytest.raises(cluster_agent.WatchEnded, match="unexpected error"):
        agent.follow(lambda: True)


def test_only_one_agent_leads_a_cluster(agent: ClusterAgent) -> None:
    assert leadership.try_become_leader(agent.cluster)
    assert leadership.try_become_leader(agent.cluster)  # the same session may ask again
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            cursor.execute(
                "SELECT pg_try_advisory_lock(%s, hashtext(%s))",
                [leadership.LEADER_LOCK_KEY, agent.cluster.pk],
            )
            assert cursor.fetchone() == (False,)
    finally:
        other.close()


def test_a_second_agent_waits_until_the_first_releases_leadership(agent: ClusterAgent) -> None:
    first = connections.create_connection("default")
    try:
        with first.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s, hashtext(%s))", [leadership.LEADER_LOCK_KEY, agent.cluster.pk])
        assert not leadership.try_become_leader(agent.cluster)
        assert leadership.try_become_leader(Cluster(id="clu_other"))
    finally:
        first.close()
    ends = clock.monotonic() + 10
    while not leadership.try_become_leader(agent.cluster):  # the server hears of it a moment later
        assert clock.monotonic() < ends


def test_an_unknown_cluster_name_is_refused_with_the_registered_names(agent: ClusterAgent) -> None:
    assert find_cluster("east") == find_cluster(agent.cluster.pk) == agent.cluster
    with pytest.raises(CommandError, match="Registered: east"):
        call_command("kube_agent", "west")


def test_a_stale_heartbeat_is_not_stored(agent: ClusterAgent, sim: Simulation) -> None:
    name = agent.objects._heartbeat_name

    def beat(version: int, ago_s: float) -> WatchEvent:
        notes = {BEAT_ANNOTATION: str(clock.milliseconds() - int(ago_s * 1000))}
        meta = {"name": name, "namespace": "gpubroker-system", "uid": "u", "resourceVersion": str(version)}
        return found(CONFIG_MAP, "MODIFIED", {"metadata": {**meta, "annotations": notes}}, version=version)

    agent.absorb([beat(5, 60)], now=sim.now)
    assert not ClusterObject.objects.exists()
    agent.absorb([beat(6, 0)], now=sim.now)
    assert ClusterObject.objects.get().name == name
    at = sim.now + timedelta(seconds=30)
    agent.absorb([beat(7, 3)], now=at)  # it proves what was true when it was sent
    assert timedelta(seconds=3) <= at - ClusterObject.objects.get().seen_at < timedelta(seconds=5)
    mine = {"metadata": {"name": name, "namespace": "gpubroker-system", "uid": "u", "resourceVersion": "8"}}
    agent.absorb([found(CONFIG_MAP, "MODIFIED", mine, version=8)], now=at)  # without a send time
    assert ClusterObject.objects.get().seen_at == at


def test_a_heartbeat_with_an_older_resource_version_freezes_the_cluster(
    agent: ClusterAgent, serve: StartServer
) -> None:
    wire = connect_to(agent, serve, listing({"metadata": {"name": "kube-system", "uid": "uid-1"}}))
    agent.identity.uid = "uid-1"

    def answer(version: str) -> ClusterObjectHeader:
        return ClusterObjectHeader(metadata=FullObjectMeta(resource_version=version))

    assert not agent.identity.is_foreign(wire.api, None)
    assert not agent.identity.is_foreign(wire.api, answer("9"))
    assert agent.identity.is_foreign(wire.api, answer("7"))
    agent.run_turn(0)
    assert agent.frozen
    assert "its state is older" in Cluster.objects.get().frozen
    agent.run_turn(0)  # nothing is due


def test_an_agent_that_missed_a_freeze_and_thaw_lists_again(agent: ClusterAgent, serve: StartServer) -> None:
    connect_to(agent, serve)
    agent.absorb([found(POD, "BEGUN"), found(POD, "PAGED", pod()), found(POD, "LISTED")], now=NOW)
    agent.run_turn(0)
    assert not agent.frozen
    cluster_freeze.freeze_cluster(agent.cluster.pk, "an operator says so")
    cluster_freeze.unfreeze_cluster(agent.cluster, why="it is well", actor=OPERATOR, now=NOW)
    agent.absorb([found(POD, "MODIFIED", pod(version=12))], now=NOW)  # and what it knows is not written again
    agent._check_at = 0.0
    agent.run_turn(0)
    assert agent.frozen


def test_an_agent_sees_all_objects_only_while_every_watch_is_open(agent: ClusterAgent) -> None:
    agent.reflectors.append(EndedThread())  # type: ignore[arg-type]
    agent.reflectors[-1].kind = RESOURCE_SLICE
    assert not agent.sees_all()
    for each in agent.reflectors:
        each.is_open = each.kind in WATCHED_KINDS
    assert agent.sees_all()
