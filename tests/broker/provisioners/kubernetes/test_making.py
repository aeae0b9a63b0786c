"""What hangs on a lease is put right, and what outlives it is only looked at."""

from datetime import timedelta
from typing import Any

import pytest

from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.finding import Found, anchor_ref
from broker.provisioners.kubernetes.making import InTheWay, mend
from broker.provisioners.kubernetes.objects import Meta, Thing
from broker.provisioners.kubernetes.render.lease import lease_objects
from tests.broker.provisioners.kubernetes.wanted import EVERY_TEMPLATE, PLUGIN, VOLUME
from tests.broker.provisioners.kubernetes.wire import Asked, Say, Serve, refused

LEASE = EVERY_TEMPLATE["volume"]
ANCHOR = Thing(metadata=Meta(name="anchor", uid="u-anchor"))
FOUND = Found(anchor_ref(LEASE), ANCHOR, ())
CLAIMS = "/persistentvolumeclaims"
OBJECTS = [each["kind"] for each in lease_objects(LEASE, PLUGIN, anchor_uid="u-anchor")]


def there(**meta: Any) -> Say:
    """Answer with what has the marks of all that hangs on the anchor, and of the volume too."""
    marks = {**labels.of_lease(LEASE), labels.VOLUME: VOLUME.volume_id}
    owner = {"kind": "ConfigMap", "name": "anchor", "uid": "u-anchor"}
    return Say(
        body={"metadata": {"name": "x", "uid": "u-x", "labels": marks, "ownerReferences": [owner], **meta}}
    )


def of_claims(asked: list[Asked]) -> list[str]:
    return [each.method for each in asked if CLAIMS in each.path]


def test_a_volumes_claim_that_is_there_is_left_alone_and_all_else_put_right(serve: Serve) -> None:
    wire = serve(there())
    mend(wire.api, PLUGIN, LEASE, FOUND)
    assert of_claims(wire.asked) == ["GET"], "the broker has no right to change it"
    applied = [each for each in wire.asked if each.body and each.body.get("kind") in OBJECTS]
    assert [each.body["kind"] for each in applied] == [
        kind for kind in OBJECTS if kind != "PersistentVolumeClaim"
    ]


@pytest.mark.parametrize(("before", "seconds"), [(timedelta(minutes=20), 8400), (timedelta(), 7200)])
def test_a_batch_that_is_put_right_keeps_the_time_its_pull_took(
    serve: Serve, before: timedelta, seconds: int
) -> None:
    batch = EVERY_TEMPLATE["batch"]  # paid for two hours from when it was active
    made = Thing(metadata=Meta(name="anchor", uid="u-anchor", creation_timestamp=batch.placed_at - before))
    wire = serve(there())
    mend(wire.api, PLUGIN, batch, Found(anchor_ref(batch), made, ()))
    (job,) = (each.body for each in wire.asked if each.body and each.body.get("kind") == "Job")
    assert job["spec"]["activeDeadlineSeconds"] == seconds
    assert job["spec"]["template"]["spec"]["containers"]


def test_a_volumes_claim_that_is_missing_is_made(serve: Serve) -> None:
    before = [there()] * (2 * OBJECTS.index("PersistentVolumeClaim"))  # each is looked at and applied
    wire = serve(*before, refused(404, "not found"), there())
    mend(wire.api, PLUGIN, LEASE, FOUND)
    assert of_claims(wire.asked) == ["GET", "POST"]
    assert wire.asked[-1].body["kind"] == OBJECTS[-1]


def test_a_strangers_claim_of_that_name_is_told(serve: Serve) -> None:
    before = [there()] * (2 * OBJECTS.index("PersistentVolumeClaim"))
    wire = serve(*before, there(labels={}))
    with pytest.raises(InTheWay, match="PersistentVolumeClaim"):
        mend(wire.api, PLUGIN, LEASE, FOUND)
