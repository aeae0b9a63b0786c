"""The product on a real control plane: register, lease, run, clean up."""

from collections.abc import Callable

from broker.models import ClusterCredential, Gpu, Lease
from broker.provisioners.kubernetes import labels
from ports import clock
from tenants.models.audit import AuditEvent
from tenants.services.rls import staff_scope
from tests.cluster.installation import Installation, offering
from tests.controlplane.nodes import Nodes
from tests.simulation import held_allocations, reload_lease, state_path

Until = Callable[[Lease, str], Lease]


def test_a_lease_runs_as_a_pod_and_leaves_no_objects(installed: Installation) -> None:
    sim = installed.sim
    lease = sim.request_lease(installed.home, offering("1g.10gb"), image="registry.example/acts:pull-1s")
    lease = installed.until(lease, "active")
    (pod,) = installed.ours("/api/v1/pods")
    assert pod["spec"]["nodeName"] == installed.node
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/mig-1g.10gb"] == "1"
    assert pod["metadata"]["labels"]["gpubroker.dev/lease"] == lease.pk
    sim.release_lease(lease)
    lease = installed.until(lease, "released")
    assert state_path(lease) == "requested queued provisioning active releasing released"
    assert installed.ours("/api/v1/pods") == []
    assert installed.ours("/api/v1/configmaps") == []
    assert held_allocations(lease) == []


def test_objects_are_written_with_our_own_field_managers(installed: Installation) -> None:
    """Conflicting field owners see each other's changes."""
    lease = installed.sim.request_lease(installed.home, offering("1g.10gb"), workload="jupyter")
    installed.until(lease, "active")

    def writers(*kinds: str) -> list[set[str]]:
        found = [[each["metadata"]["managedFields"] for each in installed.ours(kind)] for kind in kinds]
        return [{by["manager"] for of in each for by in of if "subresource" not in by} for each in found]

    project_kinds = ("namespaces", "serviceaccounts", "resourcequotas", "limitranges")
    of_project = writers(*(f"/api/v1/{kind}" for kind in project_kinds), "/apis/networking.k8s.io/v1/networkpolicies")
    of_lease = writers("/api/v1/configmaps", "/api/v1/secrets", "/api/v1/services", "/apis/apps/v1/statefulsets")
    assert (of_project, of_lease) == ([{labels.PROJECTS}] * 5, [{labels.LEASES}] * 4)


def test_a_failed_image_pull_is_shown_and_the_lease_never_becomes_active(installed: Installation) -> None:
    lease = installed.sim.request_lease(
        installed.home, offering("whole-gpu"), image="registry.example/acts:never-pulls"
    )
    installed.until(lease, "provisioning")
    end = clock.monotonic() + 90
    while "cannot be pulled" not in str(reload_lease(lease).progress):
        assert clock.monotonic() < end, reload_lease(lease).progress
        installed.pass_on()
    assert reload_lease(lease).active_at is None


def test_credentials_are_stored_encrypted_and_are_in_no_record(installed: Installation) -> None:
    key = installed.kubeconfig["users"][0]["user"]["client-key-data"]
    kept = bytes(ClusterCredential.objects.get(cluster=installed.cluster).sealed)
    assert key.encode() not in kept
    with staff_scope():
        found = str(list(AuditEvent.objects.filter(action="cluster.join").values()))
    assert installed.cluster.address in found
    assert key not in found


def test_the_inventory_follows_the_gpus_that_a_node_reports(installed: Installation, gpu_nodes: Nodes) -> None:
    gpus = Gpu.objects.filter(node__cluster=installed.cluster).order_by("index")
    assert [gpu.fixed_layout[0]["profile"] for gpu in gpus] == ["whole-gpu", "1g.10gb"]
    assert len(gpus[1].fixed_layout) == 7
    gpu_nodes.give(installed.node, **{"nvidia.com/gpu": 0})
    installed.take_inventory()
    assert [gpu.health for gpu in gpus.all()] != ["healthy", "healthy"]
    gpu_nodes.give(installed.node, **{"nvidia.com/gpu": 1})
    assert installed.take_inventory() == []
    assert [gpu.health for gpu in gpus.all()] == ["healthy", "healthy"]
