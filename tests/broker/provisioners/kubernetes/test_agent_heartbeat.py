"""The agent heartbeat: proof of reachability, identity and leadership."""

from typing import Any

import pytest

from broker.provisioners.kubernetes.agent import agent_heartbeat
from broker.provisioners.kubernetes.agent.agent_heartbeat import (
    BEAT_ANNOTATION,
    LATE_S,
    AgentHeartbeat,
    heartbeat_age_s,
    heartbeat_ref,
)
from broker.provisioners.kubernetes.client.objects import ClusterObjectHeader, FullObjectMeta
from broker.provisioners.kubernetes.client.transport import KubernetesApi
from ports import clock
from tests.broker.provisioners.kubernetes.scripted_server import (
    ScriptedAnswer,
    ScriptedServer,
    StartServer,
    error_status,
)

WHERE = "/api/v1/namespaces/gpubroker-system/configmaps"
BEATEN = ScriptedAnswer(body={"metadata": {"name": "pulse-cls-1", "uid": "u", "resourceVersion": "9"}})


def create_heartbeat(
    wire: ScriptedServer, *, is_foreign: bool = False, versions: list[Any] | None = None
) -> AgentHeartbeat:
    def judge(api: KubernetesApi, answer: ClusterObjectHeader | None) -> bool:
        if versions is not None:
            versions.append(answer and answer.metadata.resource_version)
        return is_foreign

    return AgentHeartbeat(wire.transport, heartbeat_ref("cls_1"), "ins_1", well=lambda: True, is_foreign=judge)


def test_a_heartbeat_is_one_patch_whose_response_is_checked(serve: StartServer) -> None:
    wire, wanted = serve(BEATEN), list[Any]()
    made = create_heartbeat(wire, versions=wanted)
    made.send_heartbeat()
    (sent,) = wire.requests
    assert (sent.method, sent.path.split("?")[0]) == ("PATCH", f"{WHERE}/pulse-cls-1")
    assert sent.body["metadata"]["annotations"][BEAT_ANNOTATION].isdecimal()
    assert (made.beats, wanted) == (1, ["9"])


def test_the_first_heartbeat_creates_its_config_map_after_the_identity_check(serve: StartServer) -> None:
    wire, wanted = serve(error_status(404, "not found"), BEATEN), list[Any]()
    create_heartbeat(wire, versions=wanted).send_heartbeat()
    made = wire.requests[1]
    assert (made.method, made.path.split("?")[0], wanted) == ("POST", WHERE, [None, "9"])
    marks = made.body["metadata"]["labels"]
    assert (marks["gpubroker.dev/role"], marks["gpubroker.dev/installation"]) == ("pulse", "ins_1")


def test_a_heartbeat_without_an_installation_has_no_label(serve: StartServer) -> None:
    wire = serve(error_status(404, "not found"), BEATEN)
    AgentHeartbeat(
        wire.transport, heartbeat_ref("cls_1"), "", well=lambda: True, is_foreign=lambda api, answer: False
    ).send_heartbeat()
    assert wire.requests[1].body["metadata"]["name"] == "pulse-cls-1"
    assert "gpubroker.dev/installation" not in wire.requests[1].body["metadata"]["labels"]


def test_a_foreign_cluster_gets_no_config_map_and_no_counted_heartbeat(serve: StartServer) -> None:
    wire = serve(error_status(404, "not found"))
    made = create_heartbeat(wire, is_foreign=True)
    made.send_heartbeat()
    assert ([each.method for each in wire.requests], made.beats) == (["PATCH"], 0)
    restored = create_heartbeat(serve(BEATEN), is_foreign=True)
    restored.send_heartbeat()
    assert restored.beats == 0


def test_a_refused_request_is_no_heartbeat(serve: StartServer) -> None:
    made = create_heartbeat(serve(error_status(403, "forbidden")))
    made.send_heartbeat()
    assert made.beats == 0


def test_heartbeats_are_sent_periodically_while_the_watches_work(
    serve: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire, moment, left = serve(BEATEN), [100.0], iter([True] * 60 + [False])
    monkeypatch.setattr(agent_heartbeat.clock, "monotonic", lambda: moment[0])
    monkeypatch.setattr(agent_heartbeat.clock, "sleep", lambda seconds: moment.__setitem__(0, moment[0] + seconds))
    made, well = create_heartbeat(wire), iter([False, *[True] * 60])
    made._well = lambda: next(well)
    monkeypatch.setattr(made, "send_heartbeat", lambda: setattr(made, "beats", made.beats + 1))
    made.follow(lambda: next(left))
    assert made.beats == 3  # of twelve seconds


def test_the_heartbeat_age_is_measured_from_its_send_time() -> None:
    def sent(ago_s: float) -> ClusterObjectHeader:
        at = clock.milliseconds() - int(ago_s * 1000)
        return ClusterObjectHeader(metadata=FullObjectMeta(annotations={BEAT_ANNOTATION: str(at)}))

    assert 1 <= heartbeat_age_s(sent(1)) < LATE_S < 60 <= heartbeat_age_s(sent(60)) < 60 + LATE_S
    assert [heartbeat_age_s(sent(-1)), heartbeat_age_s(ClusterObjectHeader())] == [
        0,
        0,
    ]  # the host's clock was put back
