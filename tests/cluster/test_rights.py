"""The broker under its own account: with exactly its ClusterRole everything works, and every right in it is used."""

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from threading import Thread, current_thread, main_thread
from typing import Any
from urllib.parse import urlsplit

import pytest

from broker.models import Cluster, Lease
from broker.provisioners.base import Kept, Order, Seen, order_name
from broker.provisioners.hands import Machine
from broker.provisioners.kubernetes import transport
from broker.provisioners.kubernetes.cluster import Way
from broker.provisioners.kubernetes.drivers.device_plugin import DevicePluginDriver
from broker.provisioners.kubernetes.drivers.dra import DraDriver
from broker.provisioners.kubernetes.installing import own_kubeconfig
from broker.provisioners.kubernetes.making import make_anchor, make_children
from broker.provisioners.kubernetes.mig import KubernetesHands
from broker.provisioners.kubernetes.provisioner import QUIET, KubernetesProvisioner
from broker.provisioners.kubernetes.refusals import Denied
from broker.provisioners.kubernetes.render import access
from broker.provisioners.kubernetes.render.access import Right
from broker.provisioners.kubernetes.spec import VolumeSpec
from broker.provisioners.kubernetes.specs import lease_spec
from broker.provisioners.kubernetes.transport import Transport
from broker.services import clusters, examining, joining, knocking, reconcile
from broker.services.following import Agent
from broker.services.leases import growing
from broker.services.leases.orders import order_of
from tenants.services.walls import as_tenant
from tests.broker.domain.fleet import MODELS
from tests.broker.domain.test_workloads import KEY
from tests.cluster.installed import some_id
from tests.cluster.test_product import Installation, offering
from tests.cluster.test_product import installed as installed
from tests.cluster.test_product import life as life
from tests.controlplane.api import Api, Refused
from tests.controlplane.nodes import Nodes
from tests.world import OPERATOR, fresh

ACTS = "registry.example/acts"
BOX = {"workload": "ssh", "ssh_keys": [KEY]}
BATCH = {"workload": "batch", "image": f"{ACTS}:pull-0s", "command": "train"}
SERVED = {"workload": "vllm", "command": "some/model"}
PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/v\w+(?:/namespaces/(?P<home>[^/]+))?/(?P<kinds>[a-z]+)(?:/(?P<name>[^/]+))?$"
)
VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}


class Record:
    """Every right that requests made use of."""

    def __init__(self) -> None:
        self.used: set[Right] = set()
        self.denied: list[str] = []
        self.asked: list[str] = []  # in order, but for the agent's

    def note(self, method: str, path: str, query: Any, content_type: str) -> None:
        found = PATH.fullmatch(urlsplit(path).path) or _of_namespace(path)
        if found is None:
            return  # /version and other things that everybody may read
        group, kinds, name = found["group"] or "", found["kinds"], found["name"]
        verb = VERBS.get(method) or ("get" if name else "watch" if (query or {}).get("watch") else "list")
        self.used.add(Right(verb, group, kinds))
        if current_thread() is main_thread() and kinds not in ("nodes", "namespaces"):
            self.asked.append(f"{verb} {kinds}")
        if content_type == transport.APPLY:  # it makes what is not there
            self.used.add(Right("create", group, kinds))


def _of_namespace(path: str) -> re.Match[str] | None:
    return re.fullmatch(r"/api/v1/(?P<kinds>namespaces)(?:/(?P<name>[^/]+))?(?P<group>)", path)


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Iterator[Record]:
    """Note what is asked from now on, and every refusal for want of a right."""
    made, send, watch = Record(), transport.Api.send, transport.Api.watch

    def noted(self: transport.Api, method: str, path: str, **rest: Any) -> transport.Answer:
        made.note(method, path, rest.get("query"), rest.get("content_type", ""))
        try:
            return send(self, method, path, **rest)
        except Denied as denied:
            made.denied.append(str(denied))
            raise

    def watched(self: transport.Api, kind: Any, **rest: Any) -> Iterator[bytes]:
        made.note("GET", kind.path(), {"watch": "true"}, "")
        return watch(self, kind, **rest)

    monkeypatch.setattr(transport.Api, "send", noted)
    monkeypatch.setattr(transport.Api, "watch", watched)
    return made


@pytest.fixture
def narrow(installed: Installation) -> dict[str, Any]:
    """Let the cluster be reached by the broker's own account from now on."""
    api = Transport(lambda: installed.kubeconfig).within(60)
    made = own_kubeconfig(api, installed.kubeconfig)
    joining.renew(installed.cluster, made, actor=OPERATOR, now=installed.life.now)
    return made


def live(installed: Installation, shape: str, **wanted: Any) -> Lease:
    return installed.until(installed.life.ask(installed.home, offering(shape), **wanted), "active")


def ordered(lease: Lease) -> Order:
    with as_tenant(lease.tenant_id):
        return order_of(lease)


ROUTES = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "httproutes.gateway.networking.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/gateway-api"},
    },
    "spec": {
        "group": "gateway.networking.k8s.io",
        "names": {"kind": "HTTPRoute", "plural": "httproutes"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}


def end(installed: Installation, *leases: Lease) -> None:
    for lease in leases:
        installed.life.release(lease)
    for lease in leases:
        installed.until(lease, "released")


def of_every_kind(installed: Installation) -> None:
    """Let leases of every shape live and end, by both doors."""
    Cluster.objects.update(domain="leases.example", door="ingress/public")
    notebook = live(installed, "1g.10gb", workload="jupyter")
    box = live(installed, "card", **BOX)
    batch = live(installed, "1g.10gb", **BATCH)
    end(installed, notebook, box, batch)
    served = live(installed, "1g.10gb", **SERVED)
    end(installed, served)


def at_the_gateway(installed: Installation) -> None:
    """Let people come in by a gateway."""
    api = installed.plane.api
    api.create(ROUTES)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{ROUTES['metadata']['name']}"  # type: ignore[index]
    api.until(path, lambda seen: "Established" in str(seen.get("status")))
    end_of_patience = time.monotonic() + 90
    while not served(api) and time.monotonic() < end_of_patience:
        time.sleep(0.2)
    Cluster.objects.update(domain="leases.example", door="gateway/gateway/main")
    lease = live(installed, "1g.10gb", workload="jupyter")
    assert again(installed, ordered(lease)) is Seen.READY
    end(installed, lease)
    api.delete(path)
    Cluster.objects.update(door="ingress/public")


def served(api: Api) -> bool:
    try:
        api.get("/apis/gateway.networking.k8s.io/v1/httproutes")
    except Refused:  # its storage is being made
        return False
    return True


def again(installed: Installation, order: Order) -> Seen:
    """Let a worker who knows nothing of what was made make it again."""
    return KubernetesProvisioner(installed.cluster.pk).ensure(order, now=datetime.now(UTC)).seen


def twice(installed: Installation) -> None:
    """Make leases again that are there, let one run on, and mend what somebody deleted."""
    for wanted in (BATCH, SERVED):
        lease = live(installed, "1g.10gb", **wanted)
        assert again(installed, ordered(lease)) is Seen.READY
        with as_tenant(lease.tenant_id):
            growing.extend(lease, more_s=7200, actor=installed.home.actor, now=installed.life.now)
        reconcile.step(lease.pk, lease.tenant_id, now=installed.life.now)
        end(installed, lease)
    lease = live(installed, "1g.10gb", workload="jupyter")
    order = ordered(lease)
    for kind in ("services", "secrets"):
        for each in installed.ours(f"/api/v1/{kind}"):
            meta = each["metadata"]
            installed.plane.api.delete(f"/api/v1/namespaces/{meta['namespace']}/{kind}/{meta['name']}")
    assert again(installed, order) is Seen.READY
    assert len(installed.ours("/api/v1/secrets")) == 1
    end(installed, lease)


def what_is_left(installed: Installation) -> None:
    """Take down what no lease accounts for, with its anchor and without."""
    lease = live(installed, "1g.10gb")
    order = ordered(lease)
    stray = replace(order, lease_id=some_id("lse"))
    stray = replace(stray, name=order_name(stray.lease_id, stray.generation))
    provisioner = clusters.provisioner_of(order)
    provisioner.ensure(stray, now=datetime.now(UTC))
    assert stray.name in provisioner.names()
    provisioner.remove_named(stray.name, now=datetime.now(UTC))
    end(installed, lease)
    for wanted in (BOX, BATCH, SERVED):
        lease = live(installed, "1g.10gb", **wanted)
        leave_alone(installed, "/api/v1/configmaps", ordered(lease).name)
        end(installed, lease)
    lease = live(installed, "1g.10gb", **BOX)
    for kind in ("/api/v1/configmaps", "/apis/apps/v1/statefulsets"):
        leave_alone(installed, kind, ordered(lease).name)
    end(installed, lease)


def leave_alone(installed: Installation, kind: str, name: str) -> None:
    """Take away what of a lease owns the rest, and nothing else."""
    api = installed.plane.api
    (owner,) = (each for each in installed.ours(kind) if each["metadata"]["name"].startswith(name))
    root, _, plural = kind.rpartition("/")
    here = f"{root}/namespaces/{owner['metadata']['namespace']}/{plural}/{owner['metadata']['name']}"
    api.delete(here, propagationPolicy="Orphan")
    api.until_gone(here)


def by_claims(installed: Installation, lease: Lease, kubeconfig: dict[str, Any]) -> None:
    """Ask for a slice by DRA, in the place of a lease."""
    order = replace(ordered(fresh(lease)), lease_id=some_id("lse"))
    order = replace(order, name=order_name(order.lease_id, order.generation))
    way = Way(Transport(lambda: kubeconfig), DraDriver(MODELS))
    for _ in range(2):  # the second knows nothing of what was made, and finds no pod
        other = KubernetesProvisioner(installed.cluster.pk, way)
        other._walls[order.project_id] = time.monotonic()  # it would set the quota right
        other.ensure(order, now=datetime.now(UTC) + 2 * QUIET)
    other.remove(order, now=datetime.now(UTC))


def cutting(installed: Installation, kubeconfig: dict[str, Any]) -> None:
    hands = KubernetesHands(way=lambda _: Transport(lambda: kubeconfig))
    machine = Machine("nod", installed.node, installed.cluster.pk)
    for on in (True, False):
        hands.taint(machine, on=on)


def following(installed: Installation) -> None:
    """Follow the cluster for a moment, and what its nodes publish."""
    agent, ours = Agent(installed.cluster), Cluster.objects.filter(pk=installed.cluster.pk)
    ours.update(driver="dra")
    followed = {each.kind: each for each in (*Agent(ours.get()).reflectors, *agent.reflectors)}
    ours.update(driver="device_plugin")
    going = [True]
    threads = [
        Thread(target=each.follow, args=(lambda: going[0],), daemon=True) for each in followed.values()
    ]
    for thread in threads:
        thread.start()
    for _ in range(6):
        agent.turn(0.3)
    going[0] = False


def losing(installed: Installation, nodes: Nodes) -> None:
    """Read a lost node's last heartbeat."""
    lease = live(installed, "1g.10gb")
    nodes.power(installed.node, on=False)
    nodes.until(installed.node, "Unknown")
    seen = clusters.provisioner_of(ordered(lease)).observe(ordered(lease), now=datetime.now(UTC))
    assert seen.seen is Seen.LOST
    nodes.power(installed.node, on=True)
    nodes.until(installed.node, "True")


def without_room(installed: Installation, kubeconfig: dict[str, Any]) -> None:
    """Ask why controllers cannot make their pods, and have all below the leases be as it should."""
    (quota,) = installed.ours("/api/v1/resourcequotas")
    home = quota["metadata"]["namespace"]
    path = f"/api/v1/namespaces/{home}/resourcequotas/{quota['metadata']['name']}"
    installed.plane.api.patch(path, {"spec": {"hard": {"pods": "0"}}})
    leases = [
        installed.life.ask(installed.home, offering("1g.10gb"), **wanted) for wanted in (BOX, BATCH, SERVED)
    ]
    end_of_patience = time.monotonic() + 90
    while waits := [lease for lease in leases if "quota in the cluster" not in str(fresh(lease).progress)]:
        assert time.monotonic() < end_of_patience, [fresh(lease).progress for lease in waits]
        installed.pass_on()
    by_claims(installed, leases[0], kubeconfig)


def with_a_volume(installed: Installation, kubeconfig: dict[str, Any]) -> None:
    """Make a lease with a volume, twice, and delete the volume."""
    lease = live(installed, "card")
    kept = Kept(some_id("vol"), 1, lease.tenant_id, lease.project_id)
    spec = replace(
        lease_spec(ordered(lease)), lease_id=some_id("lse"), volumes=(VolumeSpec(kept.id, 1, "/data"),)
    )
    api = Transport(lambda: kubeconfig).within(20)
    owner = make_anchor(api, DevicePluginDriver(MODELS), spec)
    for _ in range(2):
        make_children(api, DevicePluginDriver(MODELS), spec, anchor_uid=owner.metadata.uid)
    seen = clusters.provisioner_of(ordered(lease)).remove_volume(kept, now=datetime.now(UTC))
    assert seen.seen is Seen.PENDING
    end(installed, lease)


def test_every_right_is_used_and_none_is_missing(
    installed: Installation, gpu_nodes: Nodes, narrow: dict[str, Any], record: Record
) -> None:
    knocking.knock(installed.cluster.pk, now=installed.life.now)
    for driver in ("dra", "device_plugin"):
        Cluster.objects.update(driver=driver)
        examining.of_cluster(Cluster.objects.get(pk=installed.cluster.pk), now=installed.life.now)
    assert record.denied == []
    of_every_kind(installed)
    twice(installed)
    what_is_left(installed)
    cutting(installed, narrow)
    following(installed)
    at_the_gateway(installed)
    with_a_volume(installed, narrow)
    losing(installed, gpu_nodes)
    without_room(installed, narrow)
    assert record.denied == []
    given = set(access.rights((*access.BROKER, *access.DOCTOR)))
    unused = ", ".join(sorted(map(str, given - record.used)))
    assert not unused, f"allowed and never used: {unused}"
