"""The broker's ClusterRole suffices, and every right in it is used."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from threading import Thread
from typing import Any

import pytest

from broker.models import Cluster, Lease
from broker.provisioners.base import (
    ClusterUnreachable,
    CommandFailed,
    ObservedState,
    ProvisionSpec,
    VolumeRef,
    spec_name,
)
from broker.provisioners.kubernetes.client.pod_exec import run_in_pod
from broker.provisioners.kubernetes.client.transport import Transport
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection
from broker.provisioners.kubernetes.cluster_install import broker_kubeconfig
from broker.provisioners.kubernetes.drivers.device_plugin import DevicePluginDriver
from broker.provisioners.kubernetes.drivers.dra import DraDriver
from broker.provisioners.kubernetes.lease_creation import create_anchor, create_children
from broker.provisioners.kubernetes.mig_partitioner import MigManagerPartitioner
from broker.provisioners.kubernetes.provisioner import CONTROLLER_GRACE, KubernetesProvisioner
from broker.provisioners.kubernetes.render import rbac
from broker.provisioners.kubernetes.render.spec import VolumeSpec
from broker.provisioners.kubernetes.spec_conversion import lease_spec
from broker.provisioners.node_partitioner import PartitionedNode
from broker.services.clusters.agent.cluster_agent import ClusterAgent
from broker.services.clusters.health import health_probe
from broker.services.clusters.registration import cluster_examination, cluster_registration
from broker.services.inventory import cluster_provisioners
from broker.services.leases.lifecycle import extension
from broker.services.leases.provision_specs import load_provision_spec
from broker.services.reconciler import lease_reconciler
from tenants.services.rls import tenant_scope
from tests.broker.domain.fleet import MODELS
from tests.broker.domain.workloads.test_workloads import KEY
from tests.cluster.access_record import AccessRecord
from tests.cluster.installation import Installation, offering
from tests.cluster.installed import some_id
from tests.controlplane.api import Api, Refused
from tests.controlplane.nodes import Nodes
from tests.simulation import OPERATOR, reload_lease

ACTS = "registry.example/acts"
BOX = {"workload": "ssh", "ssh_keys": [KEY]}
BATCH = {"workload": "batch", "image": f"{ACTS}:pull-0s", "command": "train"}
SERVED = {"workload": "vllm", "command": "some/model"}


@pytest.fixture
def restricted_kubeconfig(installed: Installation) -> dict[str, Any]:
    """Use the broker's own account for the cluster from now on."""
    api = Transport(lambda: installed.kubeconfig).within(60)
    made = broker_kubeconfig(api, installed.kubeconfig)
    cluster_registration.renew_credentials(installed.cluster, made, actor=OPERATOR, now=installed.sim.now)
    return made


def live(installed: Installation, shape: str, **wanted: Any) -> Lease:
    return installed.until(installed.sim.request_lease(installed.home, offering(shape), **wanted), "active")


def ordered(lease: Lease) -> ProvisionSpec:
    with tenant_scope(lease.tenant_id):
        return load_provision_spec(lease)


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
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def end(installed: Installation, *leases: Lease) -> None:
    for lease in leases:
        installed.sim.release_lease(lease)
    for lease in leases:
        installed.until(lease, "released")


def run_every_kind(installed: Installation) -> None:
    """Run and end leases of every kind, behind an Ingress and a gateway."""
    Cluster.objects.update(domain="leases.example", ingress="ingress/public")
    notebook = live(installed, "1g.10gb", workload="jupyter")
    box = live(installed, "whole-gpu", **BOX)
    batch = live(installed, "1g.10gb", **BATCH)
    end(installed, notebook, box, batch)
    served = live(installed, "1g.10gb", **SERVED)
    end(installed, served)


def run_behind_gateway(installed: Installation) -> None:
    """Run a lease behind a gateway."""
    api = installed.plane.api
    api.create(ROUTES)
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{ROUTES['metadata']['name']}"  # type: ignore[index]
    api.until(path, lambda seen: "Established" in str(seen.get("status")))
    end_of_patience = time.monotonic() + 90
    while not served(api) and time.monotonic() < end_of_patience:
        time.sleep(0.2)
    Cluster.objects.update(domain="leases.example", ingress="gateway/gateway/main")
    lease = live(installed, "1g.10gb", workload="jupyter")
    assert again(installed, ordered(lease)) is ObservedState.READY
    end(installed, lease)
    api.delete(path)
    Cluster.objects.update(ingress="ingress/public")


def served(api: Api) -> bool:
    try:
        api.get("/apis/gateway.networking.k8s.io/v1/httproutes")
    except Refused:  # its storage is being made
        return False
    return True


def again(installed: Installation, order: ProvisionSpec) -> ObservedState:
    """Let a worker without state create the objects again."""
    return KubernetesProvisioner(installed.cluster.pk).ensure(order, now=datetime.now(UTC)).seen


def apply_twice(installed: Installation) -> None:
    """Create leases twice, extend one, and repair deleted objects."""
    for wanted in (BATCH, SERVED):
        lease = live(installed, "1g.10gb", **wanted)
        assert again(installed, ordered(lease)) is ObservedState.READY
        with tenant_scope(lease.tenant_id):
            extension.extend_lease(lease, more_s=7200, actor=installed.home.actor, now=installed.sim.now)
        lease_reconciler.reconcile_lease(lease.pk, lease.tenant_id, now=installed.sim.now)
        end(installed, lease)
    lease = live(installed, "1g.10gb", workload="jupyter")
    order = ordered(lease)
    for kind in ("services", "secrets"):
        for each in installed.ours(f"/api/v1/{kind}"):
            meta = each["metadata"]
            installed.plane.api.delete(f"/api/v1/namespaces/{meta['namespace']}/{kind}/{meta['name']}")
    assert again(installed, order) is ObservedState.READY
    assert len(installed.ours("/api/v1/secrets")) == 1
    end(installed, lease)


def remove_leftovers(installed: Installation) -> None:
    """Remove objects without a lease, with and without their anchor."""
    lease = live(installed, "1g.10gb")
    order = ordered(lease)
    stray = replace(order, lease_id=some_id("lse"))
    stray = replace(stray, name=spec_name(stray.lease_id, stray.generation))
    provisioner = cluster_provisioners.provisioner_of(order)
    provisioner.ensure(stray, now=datetime.now(UTC))
    assert stray.name in provisioner.names()
    provisioner.remove_named(stray.name, now=datetime.now(UTC))
    end(installed, lease)
    for wanted in (BOX, BATCH, SERVED):
        lease = live(installed, "1g.10gb", **wanted)
        delete_owner_object(installed, "/api/v1/configmaps", ordered(lease).name)
        end(installed, lease)
    lease = live(installed, "1g.10gb", **BOX)
    for kind in ("/api/v1/configmaps", "/apis/apps/v1/statefulsets"):
        delete_owner_object(installed, kind, ordered(lease).name)
    end(installed, lease)


def delete_owner_object(installed: Installation, kind: str, name: str) -> None:
    """Delete only the owner object of a lease."""
    api = installed.plane.api
    (owner,) = (each for each in installed.ours(kind) if each["metadata"]["name"].startswith(name))
    root, _, plural = kind.rpartition("/")
    here = f"{root}/namespaces/{owner['metadata']['namespace']}/{plural}/{owner['metadata']['name']}"
    api.delete(here, propagationPolicy="Orphan")
    api.until_gone(here)


def request_by_claim(installed: Installation, lease: Lease, kubeconfig: dict[str, Any]) -> None:
    """Request a slice by DRA."""
    order = replace(ordered(reload_lease(lease)), lease_id=some_id("lse"))
    slices = tuple(replace(each, driver="dra") for each in order.slices)
    order = replace(order, name=spec_name(order.lease_id, order.generation), slices=slices)
    way = ClusterConnection(Transport(lambda: kubeconfig), DraDriver(MODELS))
    for _ in range(2):  # the second knows nothing of what was made, and finds no pod
        other = KubernetesProvisioner(installed.cluster.pk, way)
        other._projects_applied[order.project_id] = time.monotonic()  # it would set the quota right
        other.ensure(order, now=datetime.now(UTC) + 2 * CONTROLLER_GRACE)
    other.remove(order, now=datetime.now(UTC))


def repartition_node(installed: Installation, kubeconfig: dict[str, Any]) -> None:
    hands = MigManagerPartitioner(transport_of=lambda _: Transport(lambda: kubeconfig))
    machine = PartitionedNode("nod", installed.node, installed.cluster.pk)
    for on in (True, False):
        hands.taint(machine, on=on)


def follow_cluster(installed: Installation) -> None:
    """Follow the cluster and its published devices once."""
    agent, ours = ClusterAgent(installed.cluster), Cluster.objects.filter(pk=installed.cluster.pk)
    ours.update(driver="dra")
    followed = {each.kind: each for each in (*ClusterAgent(ours.get()).reflectors, *agent.reflectors)}
    ours.update(driver="device_plugin")
    going = [True]
    threads = [Thread(target=each.follow, args=(lambda: going[0],), daemon=True) for each in followed.values()]
    for thread in threads:
        thread.start()
    for _ in range(6):
        agent.run_turn(0.3)
    going[0] = False


def lose_node(installed: Installation, nodes: Nodes) -> None:
    """Read a lost node's last heartbeat."""
    lease = live(installed, "1g.10gb")
    nodes.power(installed.node, on=False)
    nodes.until(installed.node, "Unknown")
    seen = cluster_provisioners.provisioner_of(ordered(lease)).observe(ordered(lease), now=datetime.now(UTC))
    assert seen.seen is ObservedState.LOST
    nodes.power(installed.node, on=True)
    nodes.until(installed.node, "True")


def check_failures(installed: Installation, kubeconfig: dict[str, Any]) -> None:
    """Read failures of controllers, and check the leases' objects."""
    (quota,) = installed.ours("/api/v1/resourcequotas")
    home = quota["metadata"]["namespace"]
    path = f"/api/v1/namespaces/{home}/resourcequotas/{quota['metadata']['name']}"
    installed.plane.api.patch(path, {"spec": {"hard": {"pods": "0"}}})
    leases = [
        installed.sim.request_lease(installed.home, offering("1g.10gb"), **wanted) for wanted in (BOX, BATCH, SERVED)
    ]
    end_of_patience = time.monotonic() + 90
    while waits := [lease for lease in leases if "quota in the cluster" not in str(reload_lease(lease).progress)]:
        assert time.monotonic() < end_of_patience, [reload_lease(lease).progress for lease in waits]
        installed.pass_on()
    request_by_claim(installed, leases[0], kubeconfig)


def run_with_volume(installed: Installation, kubeconfig: dict[str, Any]) -> None:
    """Run a lease with a volume twice, and delete the volume."""
    lease = live(installed, "whole-gpu")
    kept = VolumeRef(some_id("vol"), 1, lease.tenant_id, lease.project_id)
    spec = replace(lease_spec(ordered(lease)), lease_id=some_id("lse"), volumes=(VolumeSpec(kept.id, 1, "/data"),))
    api = Transport(lambda: kubeconfig).within(20)
    owner = create_anchor(api, DevicePluginDriver(MODELS), spec)
    for _ in range(2):
        create_children(api, DevicePluginDriver(MODELS), spec, anchor_uid=owner.metadata.uid)
    seen = cluster_provisioners.provisioner_of(ordered(lease)).remove_volume(kept, now=datetime.now(UTC))
    assert seen.seen is ObservedState.PENDING
    end(installed, lease)


def run_a_checkpoint(installed: Installation) -> set[rbac.AccessRight]:
    """Run a command in a lease; return the rights, which are not those of a recorded request."""
    lease = live(installed, "1g.10gb")
    with pytest.raises((ClusterUnreachable, CommandFailed), match="no preferred addresses found"):
        cluster_provisioners.provisioner_of(ordered(lease)).run_command(ordered(lease), "true", now=datetime.now(UTC))
    end(installed, lease)
    return {rbac.AccessRight(verb, "", "pods", "exec") for verb in ("create", "get")}


@pytest.mark.deep
def test_every_right_of_the_broker_role_is_used_and_none_is_missing(
    installed: Installation, gpu_nodes: Nodes, restricted_kubeconfig: dict[str, Any], record: AccessRecord
) -> None:
    health_probe.probe_cluster(installed.cluster.pk, now=installed.sim.now)
    for driver in ("dra", "device_plugin"):
        Cluster.objects.update(driver=driver)
        cluster_examination.examine_cluster(Cluster.objects.get(pk=installed.cluster.pk), now=installed.sim.now)
    assert record.denied == []
    run_every_kind(installed)
    apply_twice(installed)
    remove_leftovers(installed)
    repartition_node(installed, restricted_kubeconfig)
    follow_cluster(installed)
    run_behind_gateway(installed)
    run_with_volume(installed, restricted_kubeconfig)
    lose_node(installed, gpu_nodes)
    record.used |= run_a_checkpoint(installed)
    check_failures(installed, restricted_kubeconfig)
    assert record.denied == []
    given = set(rbac.list_rights((*rbac.BROKER_RULES, *rbac.DOCTOR_RULES, *rbac.POD_ACCESS_RULES)))
    given = {right for right in given if right.verb != "bind"}  # checked when a binding is applied
    unused = ", ".join(sorted(map(str, given - record.used)))
    assert not unused, f"allowed and never used: {unused}"


def run_command(kubeconfig: dict[str, Any], namespace: str, pod: str) -> str:
    """Run a command in a pod as the broker, and return why it does not run: nodes of the tests run nothing."""
    connection = Transport(lambda: kubeconfig).connection()
    with pytest.raises((ClusterUnreachable, CommandFailed)) as refused:
        run_in_pod(connection, namespace=namespace, pod=pod, container="main", command=["true"])
    return str(refused.value)


def test_the_broker_runs_commands_in_pods_of_its_projects_only(
    installed: Installation, restricted_kubeconfig: dict[str, Any]
) -> None:
    lease = live(installed, "1g.10gb")
    (pod,) = installed.ours("/api/v1/pods")
    home, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    with pytest.raises((ClusterUnreachable, CommandFailed), match="no preferred addresses found"):
        KubernetesProvisioner(installed.cluster.pk).run_command(ordered(lease), "true", now=datetime.now(UTC))
    assert "no preferred addresses found" in run_command(restricted_kubeconfig, home, name)
    for elsewhere in ("default", "kube-system", "gpubroker-system"):
        assert run_command(restricted_kubeconfig, elsewhere, name).startswith("the broker may not run commands there")
    end(installed, lease)
