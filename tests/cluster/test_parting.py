"""Removing a cluster leaves nothing running or stuck."""

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command

from broker.models import Lease, get_installation_id
from broker.provisioners.base import VolumeRef
from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.drivers.dra import DraDriver
from broker.provisioners.kubernetes.volume_claims import volume_specs
from broker.services.inventory import cluster_provisioners
from broker.services.leases.lifecycle import termination
from tenants.services.rls import tenant_scope
from tests.broker.domain.fleet import H100
from tests.cluster.installation import Installation, offering
from tests.cluster.installed import some_id
from tests.controlplane.manifests import state
from tests.controlplane.nodes import Nodes
from tests.controlplane.plane import ControlPlane
from tests.simulation import Simulation, reload_lease

pytestmark = pytest.mark.cluster
RULES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
MADE_BY_US = f"{labels.MANAGED_BY}={labels.MANAGER_NAME}"
Remove = Callable[..., str]


@pytest.fixture
def installed(own_control_plane: Callable[..., ControlPlane], sim: Simulation, settings: Any) -> Iterator[Installation]:
    settings.CREDENTIAL_ENCRYPTION_KEYS = Fernet.generate_key().decode()
    plane = own_control_plane()
    yield Installation(plane, Nodes(plane.api, f"node-{secrets.token_hex(4)}"), sim)
    cluster_provisioners._load_for_cluster.cache_clear()


@pytest.fixture
def remove(installed: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Remove:
    """Run the command with an administrator's kubeconfig, and return its output."""
    file = tmp_path / "admin.yaml"
    file.write_text(yaml.safe_dump(installed.plane.kubeconfig("admin", "system:masters")))

    def run(**options: bool) -> str:
        capsys.readouterr()
        call_command("kube_setup", kubeconfig=file, remove=True, **options)
        return capsys.readouterr().out

    return run


def spaces(installed: Installation) -> list[str]:
    found = installed.plane.api.items("/api/v1/namespaces", labelSelector=labels.OURS_SELECTOR)
    return [each["metadata"]["name"] for each in found if "deletionTimestamp" not in each["metadata"]]


def keep_a_volume(installed: Installation, lease: Lease) -> str:
    """Create the claim of a volume, and return its path."""
    kept = VolumeRef(some_id("vol"), 1, lease.tenant_id, lease.project_id)
    (volume,) = volume_specs(kept, None)
    space = names.namespace_name(lease.project_id)
    marks = {
        labels.MANAGED_BY: labels.MANAGER_NAME,
        labels.INSTALLATION: get_installation_id(),
        labels.VOLUME: volume.volume_id,
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": names.volume_name(kept.id), "namespace": space, "labels": marks},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    installed.plane.api.create(claim)
    return f"/api/v1/namespaces/{space}/persistentvolumeclaims/{names.volume_name(kept.id)}"


@pytest.mark.deep
def test_a_removed_cluster_keeps_only_the_volumes(installed: Installation, remove: Remove) -> None:
    api = installed.plane.api
    lease = installed.sim.request_lease(installed.home, offering("1g.10gb"), image="registry.example/acts:pull-0s")
    lease = installed.until(lease, "active")
    with pytest.raises(CommandError, match="1 leases run in the cluster"):
        remove()
    claim = keep_a_volume(installed, lease)
    for each in DraDriver((H100,)).cluster_objects():  # as somebody tried out, whom nobody remembers
        api.apply(each)
    assert api.items(CLASSES, labelSelector=MADE_BY_US)
    installed.sim.release_lease(lease)
    with pytest.raises(CommandError, match="are still being removed"):
        remove()
    with tenant_scope(lease.tenant_id):  # written off, though no worker has taken it down
        termination.finish_release(reload_lease(lease), now=installed.sim.now)
    (pod,) = installed.ours("/api/v1/pods")
    where = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
    api.delete(where)
    api.until(where, lambda found: "terminated" in state(found))  # and is held

    said = remove()
    assert "kept" in said
    assert installed.ours("/api/v1/pods") == []
    assert installed.ours("/api/v1/configmaps") == []
    assert api.find(claim) is not None
    assert len(spaces(installed)) == 1
    assert api.items(RULES, labelSelector=labels.OURS_SELECTOR) == []
    assert api.items(CLASSES, labelSelector=MADE_BY_US) == []

    assert "deleted" in remove(with_volumes=True)
    api.until_gone(f"/api/v1/namespaces/{names.namespace_name(lease.project_id)}")
    assert remove().count("missing") > 5, "a second time finds nothing"
    assert reload_lease(lease).end_reason == "by_tenant"


def test_objects_shared_with_another_installation_are_kept(installed: Installation, remove: Remove) -> None:
    marks = {labels.MANAGED_BY: labels.MANAGER_NAME, labels.INSTALLATION: "ins_other"}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gt-other", "labels": marks}}
    installed.plane.api.create(space)
    assert "another's  Namespace gt-other" in remove()
    assert installed.plane.api.items(RULES, labelSelector=labels.OURS_SELECTOR)
    assert spaces(installed) == ["gt-other"]
