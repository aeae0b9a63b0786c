"""A volume on a real control plane outlives its lease."""

import pytest

from broker.models import Volume
from broker.services.volumes import volume_lifecycle
from ports import clock
from tenants.services.rls import tenant_scope
from tests.cluster.installation import Installation, offering
from tests.controlplane.api import Object
from tests.simulation import held_allocations, reload_lease, state_path

CLAIMS, PODS = "/api/v1/persistentvolumeclaims", "/api/v1/pods"
AGAIN = "stopping stopped queued provisioning active"


def claim_of(installed: Installation) -> Object:
    (found,) = installed.ours(CLAIMS)
    return found


@pytest.mark.deep
def test_a_stopped_lease_keeps_its_volume_and_mounts_it_at_start(installed: Installation) -> None:
    volume = installed.sim.create_volume(installed.home, "data", size_gib=10)
    lease = installed.sim.request_lease(installed.home, offering("1g.10gb"), workload="jupyter", volume=volume.pk)
    first = installed.until(lease, "active")
    made = claim_of(installed)
    assert made["status"]["phase"] == "Bound"
    assert "ownerReferences" not in made["metadata"]
    (pod,) = installed.ours(PODS)
    mounts = {each["name"]: each["mountPath"] for each in pod["spec"]["containers"][0]["volumeMounts"]}
    assert mounts[made["metadata"]["name"]] == "/home/jovyan/work"
    assert "scratch" not in mounts

    installed.sim.stop_lease(first, installed.home)
    installed.until(lease, "stopped")
    assert (installed.ours(PODS), held_allocations(lease), installed.home.quota_used()) == ([], [], 0)
    assert claim_of(installed)["spec"]["volumeName"] == made["spec"]["volumeName"]

    installed.sim.start_lease(lease, installed.home)
    second = installed.until(lease, "active")
    assert second.generation > first.generation
    kept = claim_of(installed)
    assert kept["metadata"]["uid"] == made["metadata"]["uid"]
    assert state_path(lease) == f"requested queued provisioning active {AGAIN}"

    installed.sim.release_lease(lease)
    installed.until(lease, "released")
    assert claim_of(installed)["status"]["phase"] == "Bound"
    with tenant_scope(volume.tenant_id):
        volume_lifecycle.delete_volume(volume, actor=installed.home.actor, now=installed.sim.now)
    assert until_deleted(installed, volume) is None
    assert installed.ours(CLAIMS) == []
    installed.plane.api.until_gone(f"/api/v1/persistentvolumes/{made['spec']['volumeName']}")


def until_deleted(installed: Installation, volume: Volume) -> Volume | None:
    """Let the workers work until the volume is deleted; return it when it never was."""
    end = clock.monotonic() + 30
    while clock.monotonic() < end:
        installed.pass_on()
        with tenant_scope(volume.tenant_id):
            again = Volume.objects.get(pk=volume.pk)
        if again.state == "deleted":
            return None
    return again


@pytest.mark.deep
def test_a_volume_is_bound_again_by_the_next_lease_and_without_its_namespace(
    installed: Installation,
) -> None:
    volume = installed.sim.create_volume(installed.home, "data", size_gib=10)
    bound = set()
    for _ in range(2):
        requested = installed.sim.request_lease(installed.home, offering("whole-gpu"), volume=volume.pk)
        lease = installed.until(requested, "active")
        bound.add(claim_of(installed)["spec"]["volumeName"])
        installed.sim.release_lease(lease)
        installed.until(lease, "released")
    assert bound == {claim_of(installed)["spec"]["volumeName"]}
    assert reload_lease(lease).volume_id == volume.pk
    (namespace,) = installed.ours("/api/v1/namespaces")
    at = f"/api/v1/namespaces/{namespace['metadata']['name']}"
    installed.plane.api.delete(at)
    installed.plane.api.until_gone(at, within=60)
    with tenant_scope(volume.tenant_id):
        volume_lifecycle.delete_volume(volume, actor=installed.home.actor, now=installed.sim.now)
    assert until_deleted(installed, volume) is None
