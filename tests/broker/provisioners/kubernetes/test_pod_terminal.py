"""Terminals in pods: the exec subprotocol, its ends and refusals, and the choice of the pod."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import urllib3

from broker.provisioners.kubernetes import labels, pod_terminal
from broker.provisioners.kubernetes.client.api_connection import ApiConnection
from broker.provisioners.kubernetes.client.exec_stream import ExecStream, describe_exit, open_exec_stream
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection
from broker.provisioners.kubernetes.drivers.device_plugin import DevicePluginDriver
from broker.provisioners.kubernetes.pod_terminal import COMMAND, open_pod_terminal
from broker.provisioners.kubernetes.spec_conversion import lease_spec
from broker.provisioners.terminals import TerminalSize, TerminalUnavailable
from tests.broker.domain.fleet import MODELS
from tests.broker.provisioners.kubernetes.exec_server import ExecServer
from tests.broker.provisioners.kubernetes.scripted_server import ScriptedAnswer, StartServer, error_status
from tests.broker.provisioners.kubernetes.test_observation_cache import NOTHING, READY, a_pod, provision_spec
from tests.controlplane.certificates import Authority

SIZE = TerminalSize(columns=100, rows=30)


async def open_shell(server: ExecServer, pool: urllib3.PoolManager | None = None, *, host: str = "") -> ExecStream:
    connection = ApiConnection(pool or urllib3.PoolManager(), host or server.address, lambda: "Bearer sesame")
    return await open_exec_stream(connection, namespace="gt-1", pod="l-1-g1-0", container="main", command=COMMAND)


async def read_until(stream: ExecStream, wanted: bytes) -> bytes:
    shown = b""
    async with asyncio.timeout(10):
        while wanted not in shown:
            got = await stream.read()
            assert got, (shown, stream.end_reason)
            shown += got
    return shown


def with_shell(act: Callable[[ExecServer, ExecStream], Awaitable[None]], **how: Any) -> ExecServer:
    """Open a shell on a server of its own, and act on both."""
    server = ExecServer()

    async def use() -> None:
        async with server.up(**how):
            stream = await open_shell(server)
            try:
                await act(server, stream)
            finally:
                await stream.close()

    asyncio.run(use())
    return server


def test_keys_output_size_and_exit_code_travel_in_their_channels() -> None:
    async def use(server: ExecServer, stream: ExecStream) -> None:
        await read_until(stream, b"$ ")
        await stream.resize(SIZE)
        await stream.write(b"size\r")
        await read_until(stream, b"100x30\r\n")
        await stream.write("complain ä\r".encode())
        assert "complain ä\r".encode() in await read_until(stream, b"an error\r\n")
        assert stream.end_reason == ""
        await stream.write(b"exit 3\r")
        await read_until(stream, b"exit 3\r")
        assert await stream.read() == b""
        assert stream.end_reason == "the shell exited with code 3"
        await stream.write(b"too late")  # no error: the reader learns of the end

    server = with_shell(use)
    assert server.paths == ["/api/v1/namespaces/gt-1/pods/l-1-g1-0/exec"]
    assert server.queries[0][:4] == [("container", "main"), ("stdin", "true"), ("stdout", "true"), ("tty", "true")]
    assert [value for name, value in server.queries[0] if name == "command"] == list(COMMAND)
    assert server.authorizations == ["Bearer sesame"]
    assert server.subprotocols == ["v5.channel.k8s.io"]


def test_an_older_api_server_is_spoken_to_in_v4() -> None:
    async def use(server: ExecServer, stream: ExecStream) -> None:
        await read_until(stream, b"$ ")

    assert with_shell(use, versions=("v4.channel.k8s.io",)).subprotocols == ["v4.channel.k8s.io"]


def test_a_lost_connection_ends_the_terminal() -> None:
    async def use(server: ExecServer, stream: ExecStream) -> None:
        await stream.write(b"vanish\r")
        while await stream.read():
            pass
        assert stream.end_reason == "the cluster closed the connection"

    with_shell(use)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (b'{"status":"Success"}', "the shell exited with code 0"),
        (b'{"status":"Failure","message":"container is gone"}', "the cluster ended the shell: container is gone"),
        (b'{"status":"Failure","details":{"causes":"odd"}}', "the cluster ended the shell: "),
        (b"not json", "the shell ended"),
    ],
)
def test_the_end_is_told_in_words(status: bytes, words: str) -> None:
    assert describe_exit(status) == words


def refused_with(server: ExecServer, *, host: str = "", pool: urllib3.PoolManager | None = None, **how: Any) -> str:
    async def use() -> str:
        async with server.up(**how):
            with pytest.raises(TerminalUnavailable) as refused:
                await open_shell(server, pool, host=host)
            return str(refused.value)

    return asyncio.run(use())


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (HTTPStatus.FORBIDDEN, "The cluster does not allow terminals."),
        (HTTPStatus.UNAUTHORIZED, "The cluster does not allow terminals."),
        (HTTPStatus.NOT_FOUND, "The lease's pod does not exist any more."),
        (HTTPStatus.INTERNAL_SERVER_ERROR, "The cluster refused the terminal (HTTP 500): no kubelet"),
    ],
)
def test_a_refusal_says_why_and_what_to_do(status: HTTPStatus, words: str) -> None:
    assert refused_with(ExecServer(refusal=(status, {"kind": "Status", "message": "no kubelet"}))).startswith(words)


def test_what_is_no_api_server_is_reported() -> None:
    assert refused_with(ExecServer(), host="http://127.0.0.1:9").startswith("The cluster did not answer: ")


@pytest.mark.parametrize("trusted", [True, False])
def test_the_cluster_must_show_a_certificate_of_its_authority(trusted: bool, tmp_path: Path) -> None:
    authority = Authority.new()
    pair, client = authority.server(), authority.client("broker")
    files = {"server.crt": pair.certificate, "server.key": pair.key, "client.crt": client.certificate}
    files |= {"client.key": client.key, "ca.crt": (authority if trusted else Authority.new()).certificate}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    tls.load_verify_locations(cadata=authority.certificate.decode())
    tls.verify_mode = ssl.CERT_REQUIRED  # asks for a client certificate too
    pool = urllib3.PoolManager(
        ca_certs=str(tmp_path / "ca.crt"),
        cert_file=str(tmp_path / "client.crt"),
        key_file=str(tmp_path / "client.key"),
        cert_reqs=ssl.CERT_REQUIRED,
    )
    if not trusted:
        assert refused_with(ExecServer(), tls=tls, pool=pool) == (
            "The cluster did not answer: SSLCertVerificationError. Try again."
        )
        return
    server = ExecServer()

    async def use() -> None:
        async with server.up(tls=tls):
            stream = await open_shell(server, pool)
            await read_until(stream, b"$ ")
            await stream.close()

    asyncio.run(use())


def our_pod(name: str, *, rank: str = "0", phase: str = "Running", **meta: Any) -> dict[str, Any]:
    marks = {**labels.lease_labels(lease_spec(provision_spec(), "ins_1")), labels.RANK: rank}
    return a_pod({**READY, "phase": phase}, **{"name": name, "namespace": "gt-1", "labels": marks, **meta})


def opened_in(
    serve: StartServer, monkeypatch: pytest.MonkeyPatch, *answers: ScriptedAnswer
) -> tuple[str, str, str, TerminalSize]:
    """Return where a terminal was opened: namespace, pod and container, and the size it was given."""
    opened: dict[str, Any] = {}

    class Stream:
        async def resize(self, size: TerminalSize) -> None:
            opened["size"] = size

    async def open_stream(api: ApiConnection, **what: Any) -> Stream:
        opened.update(what)
        return Stream()

    monkeypatch.setattr(pod_terminal, "open_exec_stream", open_stream)
    connection = ClusterConnection(serve(*answers).transport, DevicePluginDriver(MODELS), "ins_1")
    asyncio.run(open_pod_terminal(provision_spec(), SIZE, connection=connection))
    return opened["namespace"], opened["pod"], opened["container"], opened["size"]


def listed(*pods: dict[str, Any]) -> ScriptedAnswer:
    return ScriptedAnswer(body={"metadata": {"resourceVersion": "5"}, "items": list(pods)})


def test_the_first_running_pod_of_the_lease_is_chosen(serve: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = {"gpubroker.dev/lease": "lse_other", "app.kubernetes.io/managed-by": "gpubroker"}
    there = listed(
        our_pod("b", rank="1"),
        our_pod("a-ended", phase="Succeeded"),
        our_pod("a-leaves", deletionTimestamp="2026-11-21T09:00:00Z"),
        our_pod("a-foreign", labels=foreign),
        our_pod("a-mine"),
    )
    namespace, pod, container, size = opened_in(serve, monkeypatch, error_status(404), there)
    assert namespace == "gt-" + "0" * 26
    assert (pod, container, size) == ("a-mine", "main", SIZE)


def test_a_lease_without_a_running_pod_has_no_terminal(serve: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TerminalUnavailable, match="not running at the moment"):
        opened_in(serve, monkeypatch, error_status(404), NOTHING)


def test_a_cluster_that_denies_access_is_named(serve: StartServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TerminalUnavailable, match="The cluster refused the broker"):
        opened_in(serve, monkeypatch, error_status(403, "pods is forbidden", reason="Forbidden"))


def test_what_does_not_answer_like_kubernetes_is_unreachable(
    serve: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TerminalUnavailable, match="The cluster cannot be reached"):
        opened_in(serve, monkeypatch, ScriptedAnswer(302))


def test_nothing_is_asked_of_a_frozen_cluster() -> None:
    with pytest.raises(TerminalUnavailable, match="frozen until an operator decides: another cluster"):
        asyncio.run(open_pod_terminal(replace(provision_spec(), frozen="another cluster"), SIZE))


def test_a_terminals_size_is_bounded() -> None:
    assert TerminalSize.bounded(10**9, -1) == TerminalSize(500, 1)
