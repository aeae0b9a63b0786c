"""Requests to an API server: retries, errors and authentication."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.kubernetes.client import api_connection, api_errors
from broker.provisioners.kubernetes.client.api_connection import connect_api
from broker.provisioners.kubernetes.client.kinds import BY_NAME, CONFIG_MAP, POD, ObjectRef
from broker.provisioners.kubernetes.client.transport import KubernetesApi, Transport
from ports import clock
from tests.broker.provisioners.kubernetes.scripted_server import ScriptedAnswer, StartServer, error_status

ANCHOR = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "l-1-g1", "namespace": "gt-a"}}
REF = ObjectRef(CONFIG_MAP, "l-1-g1", "gt-a")
THING = {"kind": "ConfigMap", "metadata": {"name": "l-1-g1", "uid": "u-1", "resourceVersion": "7"}}


def test_an_apply_sends_the_full_manifest_with_its_field_manager(serve: StartServer) -> None:
    wire = serve(ScriptedAnswer(body=THING))
    made = wire.api.apply(ANCHOR, manager="gpubroker-lease", force=True)
    (wanted,) = wire.requests
    assert (made.metadata.uid, made.metadata.resource_version) == ("u-1", "7")
    assert wanted.path == "/api/v1/namespaces/gt-a/configmaps/l-1-g1?fieldManager=gpubroker-lease&force=true"
    assert (wanted.method, wanted.body) == ("PATCH", ANCHOR)
    assert wanted.headers["Content-Type"] == "application/apply-patch+yaml"
    assert wanted.headers["Authorization"] == "Bearer first"


def test_an_apply_can_be_bound_to_an_object_uid(serve: StartServer) -> None:
    wire = serve(ScriptedAnswer(body=THING))
    wire.api.apply(ANCHOR, manager="gpubroker-lease", uid="u-1")
    assert wire.requests[0].body["metadata"]["uid"] == "u-1"
    assert "uid" not in ANCHOR["metadata"]


def test_a_delete_names_the_uid_and_waits_for_dependents(serve: StartServer) -> None:
    wire = serve(ScriptedAnswer())
    wire.api.delete(REF, uid="u-1")
    assert wire.requests[0].body["preconditions"] == {"uid": "u-1"}
    assert wire.requests[0].body["propagationPolicy"] == "Foreground"


def test_deleting_a_missing_object_succeeds(serve: StartServer) -> None:
    serve(error_status(404, "not found")).api.delete(REF, uid="u-1")


def test_getting_a_missing_object_returns_none(serve: StartServer) -> None:
    assert serve(error_status(404, "not found")).api.get(REF) is None


def test_a_list_is_read_page_by_page(serve: StartServer) -> None:
    first = {"metadata": {"continue": "next please", "resourceVersion": "5"}, "items": [{"a": 1}]}
    last = {"metadata": {"resourceVersion": "5"}, "items": [{"a": 2}]}
    wire = serve(ScriptedAnswer(body=first), ScriptedAnswer(body=last))
    items, version = wire.api.list_all(POD, labels="app=x")
    assert ([json.loads(bytes(item)) for item in items], version) == ([{"a": 1}, {"a": 2}], "5")
    assert "continue=next+please" in wire.requests[1].path
    assert all("labelSelector=app%3Dx" in wanted.path for wanted in wire.requests)
    assert all("limit=500" in wanted.path for wanted in wire.requests)


def test_a_list_without_items_may_be_null(serve: StartServer) -> None:
    assert serve(ScriptedAnswer(body={"metadata": {"resourceVersion": "5"}, "items": None})).api.list_all(POD) == (
        [],
        "5",
    )


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
def test_a_request_to_a_busy_server_is_retried(serve: StartServer, pauses: list[float], code: int) -> None:
    wire = serve(error_status(code, "busy"), error_status(code, "busy"), ScriptedAnswer(body=THING))
    assert wire.api.apply(ANCHOR, manager="m").metadata.uid == "u-1"
    assert len(wire.requests) == 3
    assert 0 < pauses[0] <= 0.1 < 0.2 >= pauses[1]


def test_a_retry_waits_for_the_retry_after_header(serve: StartServer, pauses: list[float]) -> None:
    wire = serve(error_status(429, "busy", headers={"Retry-After": "1"}), ScriptedAnswer(body=THING))
    wire.api.apply(ANCHOR, manager="m")
    assert 1.0 <= pauses[0] <= 1.1


def test_retries_without_a_header_back_off_with_jitter(serve: StartServer, pauses: list[float]) -> None:
    wire = serve(*[error_status(503, "busy")] * 6, ScriptedAnswer(body=THING))
    wire.transport.within(60).apply(ANCHOR, manager="m")
    longest = [0.1, 0.2, 0.4, 0.8, 1.6, 2.0]
    assert all(most / 2 <= pause <= most for most, pause in zip(longest, pauses, strict=True))
    shares = {pause / most for most, pause in zip(longest, pauses, strict=True)}
    assert len(shares) > 1, "all who were refused at once come back at once"


def test_a_retry_after_beyond_the_deadline_is_raised_to_the_caller(serve: StartServer, pauses: list[float]) -> None:
    wire = serve(error_status(503, "overloaded", headers={"Retry-After": "300"}))
    with pytest.raises(ClusterUnreachable, match="overloaded") as silence:
        wire.api.apply(ANCHOR, manager="m")
    assert silence.value.again_in_s == 300
    assert (len(wire.requests), pauses) == (1, [])


def test_a_dropped_connection_is_retried(serve: StartServer, pauses: list[float]) -> None:
    wire = serve(ScriptedAnswer(hang_up=True), ScriptedAnswer(body=THING))
    assert wire.api.apply(ANCHOR, manager="m").metadata.uid == "u-1"


def test_repeatedly_dropped_connections_raise_cluster_unreachable(serve: StartServer, simulated_clock: None) -> None:
    wire = serve(ScriptedAnswer(hang_up=True))
    with pytest.raises(ClusterUnreachable):
        wire.api.get(REF)
    assert len(wire.requests) > 1


def test_a_refused_connection_is_reported_without_object_addresses(serve: StartServer, simulated_clock: None) -> None:
    wire = serve()
    wire.host = "http://127.0.0.1:9"
    with pytest.raises(ClusterUnreachable, match="refused") as silence:
        wire.api.get(REF)
    assert "0x" not in str(silence.value)


@pytest.fixture
def exhaust_deadline(monkeypatch: pytest.MonkeyPatch) -> Callable[[KubernetesApi], KubernetesApi]:
    """Let the first wait last until the deadline of the API client."""

    def over(api: KubernetesApi) -> KubernetesApi:
        until_the_end = lambda _: monkeypatch.setattr(clock, "monotonic", lambda: api.deadline)  # noqa: E731
        monkeypatch.setattr(clock, "sleep", until_the_end)
        return api

    return over


def test_a_retry_beyond_the_deadline_names_the_first_error(
    serve: StartServer, exhaust_deadline: Callable[[KubernetesApi], KubernetesApi]
) -> None:
    api = exhaust_deadline(serve(error_status(503, "starting up")).api)
    with pytest.raises(api_errors.ApiThrottled, match="starting up"):
        api.get(REF)


def test_an_expired_deadline_sends_no_request(serve: StartServer) -> None:
    wire = serve()
    with pytest.raises(ClusterUnreachable, match="time limit"):
        wire.transport.within(0).get(REF)
    assert wire.requests == []


def test_a_rotated_token_is_read_again_once(serve: StartServer) -> None:
    wire = serve(error_status(401, "Unauthorized"), ScriptedAnswer(body=THING))
    wire.tokens = ["old", "new"]
    assert wire.api.apply(ANCHOR, manager="m").metadata.uid == "u-1"
    assert [wanted.headers["Authorization"] for wanted in wire.requests] == ["Bearer old", "Bearer new"]


def test_a_token_rejected_twice_is_denied(serve: StartServer) -> None:
    wire = serve(error_status(401, "Unauthorized"))
    with pytest.raises(api_errors.AccessDenied, match="Unauthorized"):
        wire.api.get(REF)
    assert len(wire.requests) == 2


@pytest.mark.parametrize(
    ("answer", "type_"),
    [
        (error_status(403, 'pods "x" is forbidden: User "broker" cannot create'), api_errors.AccessDenied),
        (error_status(403, 'pods "x" is forbidden: exceeded quota: gpub-hard'), api_errors.NamespaceQuotaExceeded),
        (
            error_status(403, 'pods "x" is forbidden: violates PodSecurity "restricted"'),
            api_errors.AdmissionDenied,
        ),
        (
            error_status(403, "terminating", causes=[{"reason": "NamespaceTerminating"}]),
            api_errors.NamespaceTerminating,
        ),
        (
            error_status(409, "conflict", causes=[{"reason": "FieldManagerConflict"}]),
            api_errors.FieldManagerConflict,
        ),
        (error_status(409, "the UID in the precondition does not match"), api_errors.ObjectConflict),
        (error_status(410, "too old resource version"), api_errors.VersionExpired),
        (error_status(422, "spec: Required value"), api_errors.ObjectInvalid),
        (error_status(400, "unknown field"), api_errors.ObjectInvalid),
        (error_status(418, "teapot"), ClusterUnreachable),
    ],
)
def test_every_api_error_has_its_own_exception_type(
    serve: StartServer, answer: ScriptedAnswer, type_: type[Exception]
) -> None:
    wire = serve(answer)
    with pytest.raises(type_) as error:
        wire.api.apply(ANCHOR, manager="m")
    assert type(error.value) is type_
    assert str(error.value) == answer.body["message"]
    assert len(wire.requests) == 1


def test_an_html_error_of_a_proxy_is_quoted(
    serve: StartServer, exhaust_deadline: Callable[[KubernetesApi], KubernetesApi]
) -> None:
    with pytest.raises(ClusterUnreachable, match="Bad Gateway"):
        exhaust_deadline(serve(ScriptedAnswer(502, b"<html>Bad Gateway</html>")).api).get(REF)


def test_a_watch_yields_lines_regardless_of_chunk_boundaries(serve: StartServer) -> None:
    chunks = (b'{"type":"AD', b'DED"}\n{"type":', b'"BOOKMARK"}\n\n', b'{"type":"x"}\n')
    wire = serve(ScriptedAnswer(chunks=chunks))
    lines = list(wire.api.watch(POD, version="5", labels="a=b", seconds=300))
    assert lines == [b'{"type":"ADDED"}', b'{"type":"BOOKMARK"}', b'{"type":"x"}']
    assert "resourceVersion=5" in wire.requests[0].path
    assert "allowWatchBookmarks=true" in wire.requests[0].path
    assert "timeoutSeconds=300" in wire.requests[0].path


def test_a_watch_from_an_old_version_raises_version_expired(serve: StartServer) -> None:
    with pytest.raises(api_errors.VersionExpired):
        list(serve(error_status(410, "too old")).api.watch(POD, version="1", seconds=300))


def test_a_watch_reports_that_it_is_open_before_the_first_event(serve: StartServer) -> None:
    opened: list[bool] = []
    open_ = lambda: opened.append(True)  # noqa: E731
    assert list(serve(ScriptedAnswer()).api.watch(POD, version="1", seconds=300, opened=open_)) == []
    assert opened == [True]
    with pytest.raises(api_errors.VersionExpired):
        list(serve(error_status(410, "too old")).api.watch(POD, version="1", seconds=300, opened=open_))
    assert opened == [True]


def test_a_merge_patch_can_change_a_subresource(serve: StartServer) -> None:
    wire = serve(ScriptedAnswer(body=THING))
    wire.api.merge(REF, {"metadata": {"labels": {"a": "b"}}}, manager="m", subresource="status")
    assert wire.requests[0].path.split("?")[0] == "/api/v1/namespaces/gt-a/configmaps/l-1-g1/status"
    assert wire.requests[0].headers["Content-Type"] == "application/merge-patch+json"


def test_a_create_request_posts_to_the_collection(serve: StartServer) -> None:
    wire = serve(ScriptedAnswer(201, THING))
    assert wire.api.create(ANCHOR, manager="m").metadata.uid == "u-1"
    assert wire.requests[0].path == "/api/v1/namespaces/gt-a/configmaps?fieldManager=m"


def test_a_forked_process_opens_a_new_connection(serve: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    wire = serve(ScriptedAnswer(body=THING))
    assert wire.connections == 0, "who only makes it may be forked yet"
    wire.api.get(REF)
    wire.api.get(REF)
    assert wire.connections == 1
    monkeypatch.setattr("os.getpid", lambda: -1)
    wire.api.get(REF)
    assert wire.connections == 2


def test_object_names_are_escaped_in_the_path() -> None:
    assert ObjectRef(POD, "../../secrets/x", "a/b").path == "/api/v1/namespaces/a%2Fb/pods/..%2F..%2Fsecrets%2Fx"
    assert BY_NAME["v1", "Node"].path("", "n1") == "/api/v1/nodes/n1"


def test_a_kubeconfig_that_cannot_be_used_is_denied_with_the_reason() -> None:
    with pytest.raises(api_errors.AccessDenied, match="kubeconfig cannot be used"):
        Transport(lambda: {"clusters": []}).within(60).get(REF)


def of_user(server: str = "https://cluster.example:6443/", **user: Any) -> dict[str, Any]:
    return {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
    }


EXEC = {"command": "no-such-program-anywhere", "apiVersion": "client.authentication.k8s.io/v1"}
INVALID_CREDENTIALS = {
    "no-such-program-anywhere": {"exec": EXEC},
    "process returned 1": {"exec": {**EXEC, "command": "false"}},
    "Expected key exec": {"exec": None},
    "neither a token nor a certificate": {"username": "me"},
    "No such file": {"tokenFile": "/no/such/token"},
    "AttributeError": {"auth-provider": {"name": "gcp"}},
    "padding": {"client-certificate-data": "abc", "client-key-data": "abc"},
    "contains invalid characters": {"token": "a\nb"},
    "invalid characters": {"token": "a€"},
}


@pytest.mark.parametrize(("says", "user"), INVALID_CREDENTIALS.items())
def test_invalid_credentials_are_denied_with_the_reason(says: str, user: dict[str, Any]) -> None:
    with pytest.raises(api_errors.AccessDenied, match=says):
        connect_api(of_user(**user))


def test_an_invalid_proxy_url_is_denied() -> None:
    kubeconfig = of_user(token="a")
    kubeconfig["clusters"][0]["cluster"]["proxy-url"] = "carrier-pigeon://x"
    with pytest.raises(api_errors.AccessDenied, match="carrier-pigeon"):
        connect_api(kubeconfig)


def test_a_trailing_line_break_of_a_token_is_not_sent() -> None:
    assert connect_api(of_user(token="abc\n")).authorization() == "Bearer abc"


FOREIGN_ANSWERS = {
    "HTML page": ScriptedAnswer(body=b"<html>Sign in</html>"),
    "empty body": ScriptedAnswer(body=b""),
    "invalid JSON": ScriptedAnswer(body=b"{no"),
    "unexpected fields": ScriptedAnswer(body={"metadata": ["x"]}),
}


@pytest.mark.parametrize("answer", FOREIGN_ANSWERS.values(), ids=FOREIGN_ANSWERS)
def test_a_successful_response_of_another_service_raises_cluster_unreachable(
    serve: StartServer, answer: ScriptedAnswer
) -> None:
    with pytest.raises(ClusterUnreachable, match="not answer like Kubernetes"):
        serve(answer).api.apply(ANCHOR, manager="m")


def test_a_list_of_another_service_raises_cluster_unreachable(serve: StartServer) -> None:
    with pytest.raises(ClusterUnreachable, match="not answer like Kubernetes: the response is not a list"):
        serve(ScriptedAnswer(body={"hello": "world"})).api.list_all(POD)


def test_redirects_to_another_server_are_not_followed(serve: StartServer) -> None:
    away = ScriptedAnswer(302, b"<html/>", {"Location": "https://elsewhere.example/"})
    wire = serve(away)
    with pytest.raises(ClusterUnreachable, match=r"like Kubernetes: HTTP 302 to https://elsewhere\.example/"):
        wire.api.get(REF)
    with pytest.raises(ClusterUnreachable, match="like Kubernetes: HTTP 302"):
        list(wire.api.watch(POD, version="1", seconds=300))
    assert len(wire.requests) == 2


def test_a_kubeconfig_gives_the_host_token_and_connection_pool() -> None:
    kubeconfig = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://cluster.example:6443/"}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
    }
    connection = connect_api(kubeconfig)
    assert connection.host == "https://cluster.example:6443"
    assert connection.authorization() == "Bearer secret"
    assert connection.pool.connection_pool_kw["maxsize"] == 32


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Write a credential program with a new token each time."""
    made = tmp_path / "sign-in"
    made.write_text("""#!/bin/sh
echo "$WHO" >> "$(dirname "$0")/calls"
number=$(wc -l < "$(dirname "$0")/calls" | tr -d ' ')
ends=2099-01-01T00:00:00Z
[ "$number" = 1 ] && ends=2020-01-01T00:00:00Z
printf '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
printf ' "status": {"token": "%s-%s", "expirationTimestamp": "%s"}}' "$1" "$number" "$ends"
""")
    made.chmod(0o755)
    return made


def test_a_hanging_sign_in_program_times_out_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_connection, "SIGN_IN_TIMEOUT_S", 0.2)
    hangs = {**EXEC, "command": "sleep", "args": ["60"]}
    with pytest.raises(api_errors.AccessDenied, match=r"did not finish within 0\.2 s"):
        connect_api(of_user(exec=hangs))


def test_a_sign_in_program_is_run_again_after_its_token_expires(program: Path) -> None:
    given = {**EXEC, "command": str(program), "args": ["told"], "env": [{"name": "WHO", "value": "broker"}]}
    connection = connect_api(of_user(exec=given))
    assert [connection.authorization() for _ in range(2)] == ["Bearer told-2"] * 2
    assert (program.parent / "calls").read_text().split() == ["broker"] * 2
