"""The reaper on a real control plane, with its own role only."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.client.api_errors import AccessDenied, AdmissionDenied
from broker.provisioners.kubernetes.client.kinds import POD, ObjectRef
from broker.provisioners.kubernetes.client.transport import Transport
from broker.provisioners.kubernetes.reaper import delete_overdue
from broker.provisioners.kubernetes.render import rbac, reaper
from broker.provisioners.kubernetes.render.spec import ProjectSpec
from tests.broker.provisioners.kubernetes.lease_specs import EVERY_TEMPLATE, PLUGIN
from tests.cluster.installed import install, make, open_project, some_id
from tests.controlplane.api import Object
from tests.controlplane.plane import ADMINISTRATORS, ControlPlane

pytestmark = pytest.mark.cluster
HOUR, METERING = timedelta(hours=1), labels.METERING_FINALIZER


@pytest.fixture
def project(control_plane: ControlPlane) -> Iterator[ProjectSpec]:
    install(control_plane.api, PLUGIN)
    made = open_project(control_plane.api, PLUGIN)
    yield made
    control_plane.api.delete(f"/api/v1/namespaces/{names.namespace_name(made.project_id, made.slug)}")


@pytest.fixture
def reaper_client(control_plane: ControlPlane) -> Transport:
    """Return a client with exactly the rights of the reaper's role."""
    subject = {"apiGroup": rbac.RBAC, "kind": "User", "name": "reaper-of-the-tests"}
    binding = rbac.cluster_role_binding("reaper-of-the-tests", account="", namespace="")
    role = {**binding["roleRef"], "name": reaper.NAME}
    control_plane.api.apply({**binding, "subjects": [subject], "roleRef": role})
    return Transport(lambda: control_plane.kubeconfig("reaper-of-the-tests"))


def lease_paid_until(plane: ControlPlane, project: ProjectSpec, paid: timedelta, **more: bool) -> list[Object]:
    now = datetime.now(tz=UTC)
    lease = replace(EVERY_TEMPLATE["jupyter"], project=project, lease_id=some_id("lse"), metered=False)
    lease = replace(lease, placed_at=now - 2 * HOUR, paid_until=now + paid, **more)
    return make(plane.api, PLUGIN, lease)


def test_only_overdue_leases_are_deleted(
    control_plane: ControlPlane, project: ProjectSpec, reaper_client: Transport
) -> None:
    over, paid = (lease_paid_until(control_plane, project, paid) for paid in (-HOUR, HOUR))
    found = delete_overdue(reaper_client.within(30))
    assert found.failed == []
    mine = [name for name in found.deleted if name.startswith(over[0]["metadata"]["namespace"])]
    assert mine == [f"{over[0]['metadata']['namespace']}/{over[0]['metadata']['name']}"]
    for each in over:
        control_plane.api.until_gone(control_plane.api.path(each))
    assert all(control_plane.api.find(control_plane.api.path(each)) for each in paid)


def test_a_pod_deleted_by_the_reaper_stays_until_its_end_is_recorded(
    control_plane: ControlPlane, project: ProjectSpec, reaper_client: Transport
) -> None:
    api = control_plane.api
    made = lease_paid_until(control_plane, project, -HOUR, metered=True)
    (runs,) = (each["metadata"]["name"] for each in made if each["kind"] == "StatefulSet")
    pod = f"/api/v1/namespaces/{made[0]['metadata']['namespace']}/pods/{runs}-0"
    api.until(pod, lambda _: True)
    delete_overdue(reaper_client.within(30))
    held = api.until(pod, lambda found: "deletionTimestamp" in found["metadata"])
    assert METERING in held["metadata"]["finalizers"]
    assert "deletionTimestamp" in api.get(api.path(made[0]))["metadata"], "its anchor waits for it"
    assert runs not in str(delete_overdue(reaper_client.within(30)).deleted)  # it is going already
    pods = ObjectRef(POD, f"{runs}-0", made[0]["metadata"]["namespace"])
    broker = Transport(lambda: control_plane.kubeconfig("admin", ADMINISTRATORS)).within(30)
    for uid in ("another's", held["metadata"]["uid"]):
        broker.let_go(pods, finalizer=METERING, uid=uid)
    for each in made:
        api.until_gone(api.path(each))


def test_the_reaper_role_cannot_read_secrets_pods_or_nodes(reaper_client: Transport) -> None:
    for path in ("/api/v1/secrets", "/api/v1/pods", "/api/v1/nodes"):
        with pytest.raises((AccessDenied, AdmissionDenied)):
            reaper_client.within(10).send("GET", path)
