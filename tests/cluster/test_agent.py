"""The agent on a real control plane: updates, repairs and restarts."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from broker.models import Cluster, ClusterObject, ClusterWatch, Gpu, Lease, Node
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client import transport
from broker.provisioners.kubernetes.render.cluster import NAMESPACE
from broker.services.clusters.observed import observed_objects
from ports import clock
from tests.cluster.installation import Installation, offering
from tests.cluster.running_agent import RunningAgent
from tests.controlplane import devices
from tests.controlplane.api import Object
from tests.controlplane.manifests import pod
from tests.controlplane.nodes import GpuNode, Nodes
from tests.simulation import reload_lease


class Dead(BaseException):
    """Death of the agent, which no exception handler catches."""


class Pen:
    """Writer of the agent that dies before or after its n-th write."""

    def __init__(self, note: Callable[..., int], *, after: bool) -> None:
        self._note, self._after, self.left = note, after, 0

    def __call__(self, cluster: Cluster, seen: list[Any], **how: Any) -> int:
        writes = bool(seen or how.get("reached"))
        self.left -= writes
        dies = writes and self.left == 0
        if dies and not self._after:
            raise Dead
        found = self._note(cluster, seen, **how)
        if dies:
            raise Dead
        return found


def pod_without_lease(node: str) -> Object:
    """Return one of our pods without a lease, like the reaper's."""
    made = pod(f"reaper-{node}", NAMESPACE, node=node)
    made["metadata"]["labels"] = {labels.MANAGED_BY: labels.MANAGER_NAME}
    return made


def test_a_pod_is_seen_and_its_lease_is_notified(watching: RunningAgent) -> None:
    installed = watching.installed
    watching.run_loop_until(watching.reads_are_cached)  # else the workers ask the cluster themselves
    installed.plane.api.create(pod_without_lease(installed.node))
    watching.run_loop_until(ClusterObject.objects.filter(kind="Pod", body__status__phase="Running").exists)
    lease = installed.until(
        installed.sim.request_lease(installed.home, offering("whole-gpu"), image="registry.example/acts:pull-1s"),
        "active",
    )
    watching.run_loop_until(lambda: [each["status"]["phase"] for each in watching.pods()] == ["Running"])
    installed.sim.release_lease(lease)

    installed.until(lease, "released")
    watching.run_loop_until(lambda: not watching.pods())
    assert all(each.lists == 1 for each in watching.agent.reflectors)


def test_the_agent_activates_a_lease_without_any_read_of_the_cluster(
    watching: RunningAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = watching.installed
    watching.run_loop_until(watching.reads_are_cached)
    requests: list[str] = []
    send = transport.KubernetesApi.send

    def noted(self: transport.KubernetesApi, method: str, path: str, **rest: Any) -> transport.ApiResponse:
        requests.append(method)
        return send(self, method, path, **rest)

    monkeypatch.setattr(transport.KubernetesApi, "send", noted)
    lease = installed.sim.request_lease(installed.home, offering("whole-gpu"), image="registry.example/acts:pull-1s")
    installed.sim.run()
    installed.sim.messages.clear()  # nobody would look again for seconds
    assert watching.run_loop_until(lambda: reload_lease(lease).state == "active") < 5
    installed.sim.run()
    assert "GET" not in requests


def test_a_late_pod_of_an_ended_lease_is_deleted_within_seconds(
    watching: RunningAgent,
) -> None:
    """Simulate a controller that acts on old state."""
    installed = watching.installed
    watching.run_loop_until(watching.reads_are_cached)
    lease = installed.sim.request_lease(installed.home, offering("whole-gpu"), image="registry.example/acts:pull-1s")
    installed.until(lease, "active")
    (pod,) = installed.ours("/api/v1/pods")
    installed.sim.release_lease(lease)
    installed.until(lease, "released")
    marks = {name: pod["metadata"][name] for name in ("namespace", "labels", "finalizers")}
    spec = {**pod["spec"], "nodeName": "", "nodeSelector": {"kubernetes.io/hostname": "nowhere"}}
    late = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "late", **marks}, "spec": spec}
    installed.plane.api.create(late)
    assert len(installed.ours("/api/v1/pods")) == 1
    ends = clock.monotonic() + 20
    while installed.ours("/api/v1/pods"):
        assert clock.monotonic() < ends, installed.ours("/api/v1/pods")
        installed.pass_on()


@pytest.mark.deep
@pytest.mark.parametrize("after", [False, True])
def test_an_agent_killed_at_any_write_is_replaced_without_lost_or_duplicate_pods(
    after: bool, watching: RunningAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed, pen = watching.installed, Pen(observed_objects.record_observed, after=after)
    monkeypatch.setattr(observed_objects, "record_observed", pen)

    def killed_until(lease: Lease, state: str, *, moment: int) -> bool:
        """Kill the agent on the way to a state; tell whether it died."""
        pen.left = moment
        try:
            installed.until(lease, state)
        except Dead:
            watching.restart()
            installed.until(lease, state)
        was_killed, pen.left = pen.left <= 0, 0
        return was_killed

    for moment in itertools.count(1):
        watching.run_loop_until(watching.reads_are_cached)
        image = "registry.example/acts:pull-1s_hang-1s"  # slow enough that there is much to write
        lease = installed.sim.request_lease(installed.home, offering("1g.10gb"), image=image)
        deaths = [killed_until(lease, "active", moment=moment)]
        assert len(installed.ours("/api/v1/pods")) == 1
        installed.sim.release_lease(lease)
        deaths.append(killed_until(lease, "released", moment=moment))
        assert installed.ours("/api/v1/pods") == []
        watching.run_loop_until(lambda: not watching.pods())
        if not any(deaths):
            break
    assert moment > 2


POLICIES, SERVICES = "/apis/networking.k8s.io/v1/networkpolicies", "/api/v1/services"
INGRESSES = "/apis/networking.k8s.io/v1/ingresses"


@pytest.mark.deep
def test_deleted_or_edited_objects_are_repaired_while_the_pod_runs(watching: RunningAgent) -> None:
    Cluster.objects.update(domain="leases.example", ingress="ingress/public", allowed_namespaces="edge")
    installed, api = watching.installed, watching.installed.plane.api
    installed.until(
        installed.sim.request_lease(installed.home, offering("1g.10gb"), workload="jupyter"), "active", seconds=180
    )
    (before,) = installed.ours("/api/v1/pods")
    home = f"/namespaces/{before['metadata']['namespace']}"
    policies = POLICIES.replace("/networkp", f"{home}/networkp")
    (service,) = installed.ours(SERVICES)

    def opened() -> list[str]:
        found = api.find(f"{policies}/gpub-ingress")
        sources = found["spec"]["ingress"][0]["from"] if found else []
        return [each["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] for each in sources]

    def closed() -> int:
        found = api.get(f"{policies}/gpub-egress")["spec"]["egress"]
        return sum(len(each.get("ipBlock", {}).get("except", [])) for rule in found for each in rule.get("to", []))

    def hosts() -> list[str]:
        return [each["spec"]["rules"][0]["host"].split(".", 1)[1] for each in installed.ours(INGRESSES)]

    assert (opened(), hosts()) == (["edge"], ["leases.example"])
    blocks = closed()
    api.delete(f"{policies}/gpub-ingress")
    api.delete(f"/api/v1{home}/services/{service['metadata']['name']}")
    api.patch(f"{policies}/gpub-egress", {"spec": {"egress": [{}]}})
    assert (opened(), closed(), installed.ours(SERVICES)) == ([], 0, [])
    Cluster.objects.update(domain="other.example", allowed_namespaces="edge ssh")  # which begins the round anew
    watching.run_loop_until(lambda: opened() == ["edge", "ssh"] and hosts() == ["other.example"], seconds=180)
    watching.run_loop_until(lambda: closed() == blocks and len(installed.ours(SERVICES)) == 1)
    (after,) = installed.ours("/api/v1/pods")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]

    def versions() -> list[str]:
        things = [*api.items(policies), *installed.ours(SERVICES), *installed.ours(INGRESSES)]
        return [each["metadata"]["resourceVersion"] for each in things]

    repair = watching.agent.repair
    watching.run_loop_until(lambda: repair.repairer.is_idle and repair.queue.load_next() == [])
    at_rest = versions()
    repair.queue.hurry()
    watching.run_loop_until(lambda: repair.queue.every_s > 1 and repair.repairer.is_idle)
    assert versions() == at_rest, "a round where nobody touched anything changes nothing"


@pytest.mark.deep
def test_a_manually_changed_or_deleted_resource_quota_is_repaired_within_seconds(watching: RunningAgent) -> None:
    installed, api = watching.installed, watching.installed.plane.api
    what = offering("1g.10gb")
    installed.until(installed.sim.request_lease(installed.home, what, image="registry.example/acts:pull-0s"), "active")
    (quota,) = installed.ours("/api/v1/resourcequotas")
    meta = quota["metadata"]
    path = f"/api/v1/namespaces/{meta['namespace']}/resourcequotas/{meta['name']}"

    def is_right() -> bool:
        there = api.find(path)
        return bool(there) and there["spec"]["hard"] == quota["spec"]["hard"]

    repair = watching.agent.repair
    watching.run_loop_until(lambda: repair.queue.load_next() == [] and repair.repairer.is_idle)
    api.patch(path, {"spec": {"hard": {"pods": "0"}}})
    assert watching.run_loop_until(is_right) < 20
    api.delete(path)
    assert watching.run_loop_until(is_right) < 30


def test_a_powered_off_node_is_lost_and_becomes_ready_again(watching: RunningAgent, gpu_nodes: Nodes) -> None:
    node = watching.installed.node

    def state() -> str:
        return Node.objects.get(name=node).state

    watching.run_loop_until(lambda: ClusterWatch.objects.count() == 4)
    gpu_nodes.power(node, on=False)
    watching.run_loop_until(lambda: state() == "lost")
    gpu_nodes.power(node, on=True)
    watching.run_loop_until(lambda: state() == "ready")


def test_published_dra_devices_are_followed_with_one_list_per_watch(installed: Installation, gpu_nodes: Nodes) -> None:
    Cluster.objects.filter(pk=installed.cluster.pk).update(driver="dra", accept_next_inventory=True)
    watching = RunningAgent(installed)
    api, node = installed.plane.api, gpu_nodes.add(GpuNode(gpus=0))

    def gpus() -> list[tuple[int, str]]:
        return list(Gpu.objects.filter(node__name=node).order_by("index").values_list("index", "health"))

    watching.run_loop_until(lambda: ClusterWatch.objects.count() == 7)
    devices.publish(api, node, gpus=2)
    watching.run_loop_until(lambda: gpus() == [(0, "healthy"), (1, "healthy")])
    devices.withdraw(api, node)
    watching.run_loop_until(lambda: gpus() == [(0, "unhealthy"), (1, "unhealthy")])
    watching.ended.set()
    assert [each.lists for each in watching.agent.reflectors] == [1] * 7
