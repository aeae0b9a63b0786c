"""Behaviour tests on a real control plane, in real time."""

import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from broker.models import Cluster, Lease, Volume
from broker.provisioners.base import spec_name
from broker.provisioners.kubernetes import names
from broker.provisioners.kubernetes.client.kubeconfig import parse_kubeconfig
from broker.provisioners.kubernetes.client.transport import RESPONSE_S, Transport
from broker.services.clusters.health import node_loss
from broker.services.clusters.registration import cluster_registration
from broker.services.reconciler import lease_reconciler
from tests.cluster.behaviours.world import Machine, Site, World, objects_of
from tests.cluster.installed import close, install
from tests.cluster.proxy import Proxy
from tests.controlplane import devices
from tests.controlplane.api import Object, Refused
from tests.controlplane.nodes import GpuNode, Nodes
from tests.controlplane.plane import ADMINISTRATORS, ControlPlane
from tests.simulation import OPERATOR, TenantContext, reload_lease

NAP_S, PATIENCE_S = 0.03, 120.0
GOES_S = timedelta(seconds=0.3)
BRIEF_S = 4.0  # then a program of two seconds is done, unless its machine is busy
BRIEF = re.compile(r":(succeed|fail|oom)-")
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
# What a server says, and to which of our calls.
ANSWERS: dict[str, tuple[str, int, Object]] = {
    "409 on apply": (
        "POST .*/(configmaps|statefulsets)",
        409,
        {"reason": "Conflict", "message": "try again"},
    ),
    "409 on delete": ("DELETE .*/configmaps/", 409, {"reason": "Conflict", "message": "other uid"}),
    "403 quota": ("POST .*/configmaps", 403, {"message": "exceeded quota: gpub-hard"}),
    "422": ("POST .*/statefulsets", 422, {"reason": "Invalid", "message": "spec.template: Invalid value"}),
    "429": (".*", 429, {"message": "too many requests"}),
    "503": (".*", 503, {"message": "unavailable"}),
    "401": (".*", 401, {"message": "Unauthorized"}),
    "403": (".*", 403, {"message": "forbidden"}),
    "silence": (".*", 0, {}),
    "nothing there": ("GET .*/configmaps/", 404, {"reason": "NotFound", "message": "not found"}),
}
NO_PODS: Object = {"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": []}


@dataclass
class RealWorld(World):
    """Simulated clusters as separate nodes of one control plane."""

    plane: ControlPlane = None  # type: ignore[assignment]
    nodes: Nodes = None  # type: ignore[assignment]
    skew: timedelta = timedelta()
    proxies: list[Proxy] = field(default_factory=list)
    real = True

    def join(self, name: str, region: str, driver: str, options: dict[str, Any], fragile: bool) -> Cluster:
        kubeconfig = self.plane.kubeconfig("admin", ADMINISTRATORS)
        if fragile:
            proxy = Proxy(self.plane)
            self.proxies.append(proxy.__enter__())
            kubeconfig = proxy.kubeconfig
        return cluster_registration.register_cluster(
            name=name,
            region=region,
            kubeconfig=parse_kubeconfig(yaml.safe_dump(kubeconfig)),
            driver=driver,
            driver_options=options,
            actor=OPERATOR,
            now=self.sim.now,
        )

    def add(self, machine: Machine, way: Any) -> str:
        if isinstance(machine, GpuNode):
            if way.name == "dra":
                install(self.plane.api, way)
            return self.nodes.add(machine)
        install(self.plane.api, way)
        host = self.nodes.add(GpuNode(gpus=0))
        devices.publish(self.plane.api, host, gpus=machine.gpus)
        return host

    def reported_by(self, site: Site) -> Any:
        nodes = [{**self.nodes.see(host), "kind": "Node"} for host in site.hosts]
        published = []
        if site.driver.name == "dra":
            items = self.plane.api.items(SLICES)
            published = [{**each, "kind": "ResourceSlice"} for each in items if each["spec"]["nodeName"] in site.hosts]
        return objects_of([*nodes, *published])

    def wait(self, seconds: float) -> None:
        self.skew += timedelta(seconds=seconds)
        for _ in range(3):
            self.run_briefly()
            self.sim.sweep()

    def run_without_workers(self, seconds: float) -> None:
        began = time.monotonic()
        time.sleep(BRIEF_S)
        while self._something_brief_runs() and time.monotonic() < began + PATIENCE_S:
            time.sleep(NAP_S)
        self.skew += timedelta(seconds=seconds - (time.monotonic() - began))
        self.sim.clock.at = datetime.now(UTC) + self.skew

    def _something_brief_runs(self) -> bool:
        return any(
            pod["status"].get("phase") == "Running" and BRIEF.search(pod["spec"]["containers"][0]["image"])
            for pod in self._of_ours("pods")
        )

    def run_briefly(self) -> None:
        time.sleep(NAP_S)
        self.sim.clock.at = max(self.sim.clock.at, datetime.now(UTC) + self.skew)
        self._drop_repeated_messages()
        self.sim.run()
        for lease in self.leases:  # as the agent's hints would have it
            current = reload_lease(lease)
            if current.state in ("stopping", "releasing"):
                self.skew += GOES_S  # without an agent it is looked for twice, some seconds apart
            if current.state in ("provisioning", "active", "releasing"):
                lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=self.sim.now)

    def _drop_repeated_messages(self) -> None:
        """Drop duplicate messages, because each would enqueue a message of its own."""
        once = {(at, task, subject): (at, n, task, subject, *rest) for at, n, task, subject, *rest in self.sim.messages}
        self.sim.messages[:] = sorted(once.values())  # sorted is a heap, too

    def attempts(self) -> Iterable[int]:
        end = time.monotonic() + PATIENCE_S
        number = 0
        while time.monotonic() < end:
            yield number
            number += 1
            if number % 40 == 0:
                self.sim.sweep()

    def lose_node(self, host: str) -> None:
        """Power off a node, and report it at once."""
        self.nodes.power(host, on=False)
        node = self.nodes.see(host)
        for condition in node["status"]["conditions"]:
            if condition["type"] == "Ready":
                condition |= {"status": "Unknown", "reason": "NodeStatusUnknown"}
        patch = {"status": {"conditions": node["status"]["conditions"]}}
        self.plane.api.patch(f"/api/v1/nodes/{host}/status", patch)
        self._follow(host, hears=False)

    def recover_node(self, host: str) -> None:
        self.nodes.power(host, on=True)
        self.nodes.until(host, "True")
        for pod in self.plane.api.items("/api/v1/pods", fieldSelector=f"spec.nodeName={host}"):
            self._ready_again(pod)  # at once, and not only when its kubelet has looked
        self._follow(host, hears=True)

    def _follow(self, host: str, *, hears: bool) -> None:
        """Handle a node event as the agent does."""
        site = next(site for site in self.sites if host in site.hosts)
        node_loss.update_node_state(site.cluster, host, hears=hears, now=self.sim.now)

    def _ready_again(self, pod: Object) -> None:
        for condition in pod["status"].get("conditions", []):
            if condition["type"] in ("Ready", "ContainersReady"):
                condition["status"] = "True"
        where = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        with suppress(Refused):
            self.plane.api.patch(f"{where}/status", {"status": {"conditions": pod["status"].get("conditions")}})

    def set_gpu_count(self, site: Site, host: str, gpus: int) -> None:
        self.nodes.give(host, **{"nvidia.com/gpu": gpus})
        self.take_inventory(site)

    def evict_pod(self, lease: Lease) -> None:
        before = {pod["metadata"]["uid"] for pod in self.pods(lease)}
        for pod in self.pods(lease):
            self.plane.api.delete(_path(pod))
        self.until_true(
            lambda: {pod["metadata"]["uid"] for pod in self.pods(lease)} - before, "another pod in its place"
        )

    def edit_objects(self, lease: Lease) -> None:
        space = names.namespace_name(lease.project_id)
        path = f"/apis/apps/v1/namespaces/{space}/statefulsets/{_name(lease)}"
        self.plane.api.patch(path, {"spec": {"replicas": 0}})
        self.until_true(lambda: not self.pods(lease), "that it has no pod")

    def end_pod(self, lease: Lease, reason: str) -> None:
        (pod,) = self.pods(lease)
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        pushed = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": reason,
            "lastTransitionTime": moment,
        }
        # Held, for else it is replaced at once; then the one that it was is all there is to see.
        self.plane.api.patch(_path(pod), {"metadata": {"finalizers": ["test.example/holds"]}})
        status: Object = {"phase": "Failed"}
        if reason == "Evicted":
            status["reason"] = reason
        else:
            status["conditions"] = [pushed]
        self.plane.api.patch(f"{_path(pod)}/status", {"status": status})
        self.held.append(_path(pod))

    @property
    def held(self) -> list[str]:
        return self.__dict__.setdefault("_held", [])

    def unblock_deletions(self) -> None:
        while self.held:
            with suppress(Refused):
                self.plane.api.patch(self.held.pop(), {"metadata": {"finalizers": None}})

    def delete_all_of(self, lease: Lease) -> None:
        space, name = names.namespace_name(lease.project_id), _name(lease)
        path = f"/api/v1/namespaces/{space}/configmaps/{name}"
        self.plane.api.delete(path, {"propagationPolicy": "Foreground"})

    def block_deletion(self, lease: Lease) -> Callable[[], None]:
        (pod,) = self.pods(lease)
        self.plane.api.patch(_path(pod), {"metadata": {"finalizers": ["test.example/holds"]}})
        self.held.append(_path(pod))
        return self.unblock_deletions

    def delete_namespace(self, owner: TenantContext) -> None:
        path = f"/api/v1/namespaces/{names.namespace_name(owner.project.pk)}"
        self.plane.api.delete(path)
        self.until_true(lambda: self.plane.api.find(path) is None, "that the namespace is gone")

    def create_foreign_object(self, lease: Lease) -> None:
        space, name = names.namespace_name(lease.project_id), spec_name(lease.pk, reload_lease(lease).generation + 1)
        meta = {"name": name, "namespace": space}
        self.plane.api.create(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"mine": "not yours"}}
        )
        self.names[space] = "<project space>"

    def inject_fault(self, what: str, *, times: int = 1) -> Callable[[], None]:
        pattern, status, body = ANSWERS[what]
        (proxy,) = self.proxies[:1]
        fault = proxy.fails(pattern, status, body=body, times=times)
        no_pods = proxy.fails("GET .*/pods\\?", line=NO_PODS, times=times if what == "nothing there" else 0)
        if what == "silence":  # nobody need wait for it as long as the product would
            Transport.within.__defaults__ = (0.1,)

        def over() -> None:
            fault.times = no_pods.times = 0
            Transport.within.__defaults__ = (RESPONSE_S,)

        return over

    def storage_identity(self, volume: Volume) -> str:
        (claim,) = self._marked("persistentvolumeclaims", f"gpubroker.dev/volume={volume.pk}")
        return f"{claim['metadata']['uid']} {claim['spec']['volumeName']}"

    def count_leases(self) -> int:
        return len({each["metadata"]["labels"]["gpubroker.dev/lease"] for each in self._of_ours("configmaps")})

    def pods(self, lease: Lease) -> list[Object]:
        mine = f"gpubroker.dev/lease={lease.pk}"
        found = self.plane.api.items("/api/v1/pods", labelSelector=mine)
        return [each for each in found if "deletionTimestamp" not in each["metadata"]]

    def _of_ours(self, kind: str) -> list[Object]:
        tenants = (f"gpubroker.dev/tenant={made.tenant.pk},gpubroker.dev/lease" for made in self.homes)
        return [each for marks in tenants for each in self._marked(kind, marks)]

    def _marked(self, kind: str, marks: str) -> list[Object]:
        return self.plane.api.items(f"/api/v1/{kind}", labelSelector=marks)

    def check_limits(self, lease: Lease, **limits: str) -> None:
        wanted = {f"nvidia.com/{name.replace('_', '-', 1).replace('__', '.')}": n for name, n in limits.items()}
        values: dict[str, int] = {}
        for pod in self.pods(lease):
            for name, count in pod["spec"]["containers"][0]["resources"].get("limits", {}).items():
                if name.startswith("nvidia.com/"):
                    values[name] = values.get(name, 0) + int(count)
        assert {name: str(count) for name, count in values.items()} == wanted

    def clear(self) -> None:
        """Delete what the test created; its nodes are removed by their fixture."""
        self.unblock_deletions()
        Transport.within.__defaults__ = (RESPONSE_S,)
        for made in self.homes:
            close(self.plane.api, f"gpubroker.dev/tenant={made.tenant.pk}")
        for site in self.sites:
            if site.driver.name == "dra":
                for host in site.hosts:
                    devices.withdraw(self.plane.api, host)
        for proxy in self.proxies:
            proxy.__exit__()


def _name(lease: Lease) -> str:
    return spec_name(lease.pk, reload_lease(lease).generation)


def _path(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
