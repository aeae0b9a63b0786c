"""A volume on a real control plane: a claim that no lease owns, found again after a stop, gone when it is deleted."""

from broker.models import Volume
from broker.services.volumes import keeping
from ports import clock
from tenants.services.walls import as_tenant
from tests.cluster.test_product import Installation, offering
from tests.cluster.test_product import installed as installed
from tests.cluster.test_product import life as life
from tests.controlplane.api import Object
from tests.world import fresh, held, path

CLAIMS, PODS = "/api/v1/persistentvolumeclaims", "/api/v1/pods"
AGAIN = "stopping stopped queued provisioning active"


def claim_of(installed: Installation) -> Object:
    (found,) = installed.ours(CLAIMS)
    return found


def test_stop_keeps_the_volume_and_start_finds_it(installed: Installation) -> None:
    volume = installed.life.volume(installed.home, "data", size_gib=10)
    lease = installed.life.ask(installed.home, offering("1g.10gb"), workload="jupyter", volume=volume.pk)
    first = installed.until(lease, "active")
    made = claim_of(installed)
    assert made["status"]["phase"] == "Bound"
    assert "ownerReferences" not in made["metadata"]
    (pod,) = installed.ours(PODS)
    mounts = {each["name"]: each["mountPath"] for each in pod["spec"]["containers"][0]["volumeMounts"]}
    assert mounts[made["metadata"]["name"]] == "/home/jovyan/work"
    assert "scratch" not in mounts

    installed.life.stop(first, installed.home)
    installed.until(lease, "stopped")
    assert (installed.ours(PODS), held(lease), installed.home.used()) == ([], [], 0)
    assert claim_of(installed)["spec"]["volumeName"] == made["spec"]["volumeName"]

    installed.life.start(lease, installed.home)
    second = installed.until(lease, "active")
    assert second.generation > first.generation
    kept = claim_of(installed)
    assert kept["metadata"]["uid"] == made["metadata"]["uid"]
    assert path(lease) == f"requested queued provisioning active {AGAIN}"

    installed.life.release(lease)
    installed.until(lease, "released")
    assert claim_of(installed)["status"]["phase"] == "Bound"
    with as_tenant(volume.tenant_id):
        keeping.delete(volume, actor=installed.home.actor, now=installed.life.now)
    assert until_deleted(installed, volume) is None
    assert installed.ours(CLAIMS) == []
    installed.plane.api.until_gone(f"/api/v1/persistentvolumes/{made['spec']['volumeName']}")


def until_deleted(installed: Installation, volume: Volume) -> Volume | None:
    """Let the workers work until the volume is deleted; return it when it never was."""
    end = clock.monotonic() + 30
    while clock.monotonic() < end:
        installed.pass_on()
        with as_tenant(volume.tenant_id):
            again = Volume.objects.get(pk=volume.pk)
        if again.state == "deleted":
            return None
    return again


def test_the_next_lease_finds_what_this_one_left_and_a_namespace_that_is_gone_holds_nothing_up(
    installed: Installation,
) -> None:
    volume = installed.life.volume(installed.home, "data", size_gib=10)
    bound = set()
    for _ in range(2):
        asked = installed.life.ask(installed.home, offering("card"), volume=volume.pk)
        lease = installed.until(asked, "active")
        bound.add(claim_of(installed)["spec"]["volumeName"])
        installed.life.release(lease)
        installed.until(lease, "released")
    assert bound == {claim_of(installed)["spec"]["volumeName"]}
    assert fresh(lease).volume_id == volume.pk
    (namespace,) = installed.ours("/api/v1/namespaces")
    at = f"/api/v1/namespaces/{namespace['metadata']['name']}"
    installed.plane.api.delete(at)
    installed.plane.api.until_gone(at, within=60)
    with as_tenant(volume.tenant_id):
        keeping.delete(volume, actor=installed.home.actor, now=installed.life.now)
    assert until_deleted(installed, volume) is None
