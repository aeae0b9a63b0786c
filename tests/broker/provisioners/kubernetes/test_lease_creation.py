"""Objects of a lease are repaired; those that outlive it are not."""

from datetime import timedelta
from typing import Any

import pytest

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client.objects import ClusterObjectHeader, FullObjectMeta
from broker.provisioners.kubernetes.lease_creation import ForeignObjectError, repair_children
from broker.provisioners.kubernetes.observe.object_lookup import LeaseObjects, anchor_ref
from broker.provisioners.kubernetes.render.lease import lease_objects
from tests.broker.provisioners.kubernetes.lease_specs import EVERY_TEMPLATE, PLUGIN, VOLUME
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


def there(**meta: Any) -> ScriptedAnswer:
    """Answer with all objects of a lease and its volume."""
    marks = {**labels.lease_labels(LEASE), labels.VOLUME: VOLUME.volume_id}
    owner = {"kind": "ConfigMap", "name": "anchor", "uid": "u-anchor"}
    return ScriptedAnswer(
        body={"metadata": {"name": "x", "uid": "u-x", "labels": marks, "ownerReferences": [owner], **meta}}
    )


def of_claims(wanted: list[ReceivedRequest]) -> list[str]:
    return [each.method for each in wanted if CLAIMS in each.path]


def test_a_volumes_claim_that_is_there_is_left_alone_and_all_else_put_right(serve: StartServer) -> None:
    wire = serve(there())
    repair_children(wire.api, PLUGIN, LEASE, FOUND)
    assert of_claims(wire.requests) == ["GET"], "the broker has no right to change it"
    applied = [each for each in wire.requests if each.body and each.body.get("kind") in OBJECTS]
    assert [each.body["kind"] for each in applied] == [kind for kind in OBJECTS if kind != "PersistentVolumeClaim"]


@pytest.mark.parametrize(("before", "seconds"), [(timedelta(minutes=20), 8400), (timedelta(), 7200)])
def test_a_batch_that_is_put_right_keeps_the_time_its_pull_took(
    serve: StartServer, before: timedelta, seconds: int
) -> None:
    batch = EVERY_TEMPLATE["batch"]  # paid for two hours from when it was active
    made = ClusterObjectHeader(
        metadata=FullObjectMeta(name="anchor", uid="u-anchor", creation_timestamp=batch.placed_at - before)
    )
    wire = serve(there())
    repair_children(wire.api, PLUGIN, batch, LeaseObjects(anchor_ref(batch), made, ()))
    (job,) = (each.body for each in wire.requests if each.body and each.body.get("kind") == "Job")
    assert job["spec"]["activeDeadlineSeconds"] == seconds
    assert job["spec"]["template"]["spec"]["containers"]


def test_a_volumes_claim_that_is_missing_is_made(serve: StartServer) -> None:
    before = [there()] * (2 * OBJECTS.index("PersistentVolumeClaim"))  # each is looked at and applied
    wire = serve(*before, error_status(404, "not found"), there())
    repair_children(wire.api, PLUGIN, LEASE, FOUND)
    assert of_claims(wire.requests) == ["GET", "POST"]
    assert wire.requests[-1].body["kind"] == OBJECTS[-1]


def test_a_foreign_volume_claim_of_that_name_is_reported(serve: StartServer) -> None:
    before = [there()] * (2 * OBJECTS.index("PersistentVolumeClaim"))
    wire = serve(*before, there(labels={}))
    with pytest.raises(ForeignObjectError, match="PersistentVolumeClaim"):
        repair_children(wire.api, PLUGIN, LEASE, FOUND)
