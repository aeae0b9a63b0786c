"""Mount paths and deletion of volume claims."""

from typing import Any

import pytest

from broker.domain.workloads.templates import HOME, TEMPLATES
from broker.provisioners.base import ObservedState, VolumeRef
from broker.provisioners.kubernetes.render.spec import VolumeSpec
from broker.provisioners.kubernetes.volume_claims import remove_volume_claim, volume_specs
from tests.broker.provisioners.kubernetes.scripted_server import ScriptedAnswer, StartServer, error_status

KEPT = VolumeRef("vol_1", 30, "ten_1", "prj_1")
OURS = {
    "app.kubernetes.io/managed-by": "gpubroker",
    "gpubroker.dev/installation": "ins_1",
    "gpubroker.dev/project": "prj_1",
    "gpubroker.dev/tenant": "ten_1",
    "gpubroker.dev/volume": "vol_1",
}


def claim(**meta: Any) -> ScriptedAnswer:
    return ScriptedAnswer(body={"metadata": {"name": "v-1", "namespace": "gt-1", "uid": "u-1", "labels": OURS, **meta}})


@pytest.mark.parametrize(("template", "home"), [("jupyter", "/home/jovyan/work"), ("ssh", HOME), ("unknown", HOME)])
def test_a_volume_is_mounted_at_the_home_of_its_template(template: str, home: str) -> None:
    assert volume_specs(KEPT, TEMPLATES.get(template)) == (VolumeSpec("vol_1", 30, home),)
    assert volume_specs(None, TEMPLATES.get(template)) == ()


def test_our_volume_claim_is_deleted_once_and_then_pending(serve: StartServer) -> None:
    wire = serve(claim(), ScriptedAnswer())
    left = remove_volume_claim(wire.api, KEPT, installation="ins_1")
    assert left
    assert (left.seen, left.text) == (ObservedState.PENDING, "being deleted")
    assert [wanted.method for wanted in wire.requests] == ["GET", "DELETE"]
    assert wire.requests[0].path == "/api/v1/namespaces/gt-1/persistentvolumeclaims/v-1"
    assert wire.requests[1].body["preconditions"] == {"uid": "u-1"}
    going = serve(claim(deletionTimestamp="2026-11-21T09:00:00Z"))
    assert remove_volume_claim(going.api, KEPT, installation="ins_1")
    assert [wanted.method for wanted in going.requests] == ["GET"]


def test_a_missing_or_foreign_volume_claim_is_left_alone(serve: StartServer) -> None:
    assert remove_volume_claim(serve(error_status(404, "not found")).api, KEPT, installation="ins_1") is None
    for other in ("volume", "project", "installation"):
        wire = serve(claim(labels={**OURS, f"gpubroker.dev/{other}": "another"}))
        assert remove_volume_claim(wire.api, KEPT, installation="ins_1") is None
        assert [wanted.method for wanted in wire.requests] == ["GET"]
