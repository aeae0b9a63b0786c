"""Repair of a lease's objects and its volume claim."""

from datetime import timedelta
from typing import Any

import pytest

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client.objects import ClusterObjectHeader, FullObjectMeta
from broker.provisioners.kubernetes.lease_creation import ForeignObjectError, repair_children
from broker.provisioners.kubernetes.observe.object_lookup import LeaseObjects, anchor_ref
from broker.provisioners.kubernetes.render.lease import lease_objects
from tests.broker.provisioners.kubernetes.lease_specs import DRIVERS, EVERY_TEMPLATE, PLUGIN, VOLUME
from tests.broker.provisioners.kubernetes.scripted_server import (
    ReceivedRequest,
    ScriptedAnswer,
    StartServer,
    error_status,
)

LEASE = EVERY_TEMPLATE["volume"]
ANCHOR = ClusterObjectHeader(metadata=FullObjectMeta(name="anchor", uid="u-anchor"))
FOUND = LeaseObjects(anchor_ref(LEASE), ANCHOR, ())
CLAIMS = "/persistentvolumeclaims"
OBJECTS = [each["kind"] for each in lease_objects(LEASE, PLUGIN, anchor_uid="u-anchor")]


def existing_objects(**meta: Any) -> ScriptedAnswer:
    """Answer with all objects of a lease and its volume."""
    marks = {**labels.lease_labels(LEASE), labels.VOLUME: VOLUME.volume_id}
    owner = {"kind": "ConfigMap", "name": "anchor", "uid": "u-anchor"}
    return ScriptedAnswer(
        body={"metadata": {"name": "x", "uid": "u-x", "labels": marks, "ownerReferences": [owner], **meta}}
    )


def volume_claim_methods(wanted: list[ReceivedRequest]) -> list[str]:
    return [each.method for each in wanted if CLAIMS in each.path]


def test_an_existing_volume_claim_is_kept_and_other_lease_objects_are_repaired(serve: StartServer) -> None:
    wire = serve(existing_objects())
    repair_children(wire.api, PLUGIN, LEASE, FOUND)
    assert volume_claim_methods(wire.requests) == ["GET"], "the broker has no right to change it"
    applied = [each for each in wire.requests if each.body and each.body.get("kind") in OBJECTS]
    assert [each.body["kind"] for each in applied] == [kind for kind in OBJECTS if kind != "PersistentVolumeClaim"]


def test_an_existing_resource_claim_is_never_changed(serve: StartServer) -> None:
    """Its spec cannot change, and its lease may have moved to the start of its device."""
    wire = serve(existing_objects())
    repair_children(wire.api, DRIVERS["dra"], LEASE, FOUND)
    assert [each.method for each in wire.requests if "/resourceclaims" in each.path] == ["GET"]


@pytest.mark.parametrize(("before", "seconds"), [(timedelta(minutes=20), 8400), (timedelta(), 7200)])
def test_the_deadline_of_a_repaired_batch_job_includes_its_image_pull(
    serve: StartServer, before: timedelta, seconds: int
) -> None:
    batch = EVERY_TEMPLATE["batch"]  # paid for two hours from when it was active
    made = ClusterObjectHeader(
        metadata=FullObjectMeta(name="anchor", uid="u-anchor", creation_timestamp=batch.placed_at - before)
    )
    wire = serve(existing_objects())
    repair_children(wire.api, PLUGIN, batch, LeaseObjects(anchor_ref(batch), made, ()))
    (job,) = (each.body for each in wire.requests if each.body and each.body.get("kind") == "Job")
    assert job["spec"]["activeDeadlineSeconds"] == seconds
    assert job["spec"]["template"]["spec"]["containers"]


def test_a_missing_volume_claim_is_created(serve: StartServer) -> None:
    before = [existing_objects()] * (2 * OBJECTS.index("PersistentVolumeClaim"))  # each is read and applied
    wire = serve(*before, error_status(404, "not found"), existing_objects())
    repair_children(wire.api, PLUGIN, LEASE, FOUND)
    assert volume_claim_methods(wire.requests) == ["GET", "POST"]
    assert wire.requests[-1].body["kind"] == OBJECTS[-1]


def test_a_foreign_volume_claim_of_that_name_is_reported(serve: StartServer) -> None:
    before = [existing_objects()] * (2 * OBJECTS.index("PersistentVolumeClaim"))
    wire = serve(*before, existing_objects(labels={}))
    with pytest.raises(ForeignObjectError, match="PersistentVolumeClaim"):
        repair_children(wire.api, PLUGIN, LEASE, FOUND)
