"""Examination of servers that are not Kubernetes API servers."""

from typing import Any

import pytest

from broker.provisioners.kubernetes.doctor import examination
from broker.provisioners.kubernetes.doctor.findings import CheckOutcome
from broker.provisioners.kubernetes.doctor.snapshot import UnreadablePart
from broker.provisioners.kubernetes.doctor.snapshot_collection import RegisteredCluster, collect_snapshot
from broker.provisioners.kubernetes.drivers.driver_registry import create_driver
from tests.broker.provisioners.kubernetes.doctor.healthy_cluster import NOW
from tests.broker.provisioners.kubernetes.scripted_server import ScriptedAnswer, StartServer

KUBECONFIG: dict[str, Any] = {"users": [{"name": "u", "user": {"token": "secret"}}]}
VERSION = ScriptedAnswer(body={"gitVersion": "v1.36.3"})
FOREIGN_ANSWERS = {
    "HTML page": ScriptedAnswer(body=b"<html>Sign in</html>"),
    "other JSON": ScriptedAnswer(body={"hello": "world"}),
    "list": ScriptedAnswer(body=b"[1]"),
    "number instead of a version": ScriptedAnswer(body={"gitVersion": 5}),
    "redirect": ScriptedAnswer(302, b"", {"Location": "https://elsewhere.example/"}),
    "invalid Date header": ScriptedAnswer(body={"gitVersion": "v1.36.3"}, headers={"Date": "Caturday"}),
}


@pytest.mark.parametrize("answer", FOREIGN_ANSWERS.values(), ids=FOREIGN_ANSWERS)
def test_a_server_that_is_no_api_server_gives_one_finding(serve: StartServer, answer: ScriptedAnswer) -> None:
    seen = collect_snapshot(
        KUBECONFIG,
        create_driver("dra", {}, ()),
        known=RegisteredCluster(),
        now=NOW,
        transport=serve(answer).transport,
    )
    assert isinstance(seen.version, UnreadablePart)
    (only,) = examination.examine_cluster(seen)
    assert (only.name, only.outcome) == ("reachable", CheckOutcome.BAD)
    assert "does not answer like Kubernetes" in only.seen
    assert "Check `server`" in only.fix


def test_snapshot_parts_with_foreign_answers_are_unreadable(serve: StartServer) -> None:
    wire = serve(VERSION, VERSION, ScriptedAnswer(body={"groups": None, "metadata": {"resourceVersion": "5"}}))
    seen = collect_snapshot(
        KUBECONFIG, create_driver("dra", {}, ()), known=RegisteredCluster(), now=NOW, transport=wire.transport
    )
    assert seen.version.git_version == "v1.36.3"  # type: ignore[union-attr]
    for unseen in (seen.groups, seen.rights):
        assert isinstance(unseen, UnreadablePart)
        assert "does not answer like Kubernetes" in unseen.reason
    assert len(examination.examine_cluster(seen)) > 25
