"""Commands in a running container, over a WebSocket."""

import base64
import hashlib
import json
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from time import sleep
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
import urllib3

from broker.provisioners.base import ClusterUnreachable, CommandFailed
from broker.provisioners.kubernetes.client.api_connection import ApiConnection
from broker.provisioners.kubernetes.client.exec_request import connection_options
from broker.provisioners.kubernetes.client.pod_exec import in_background, run_in_pod

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
DONE = (3, {"status": "Success"})


def frame(channel: int, content: Any) -> bytes:
    body = bytes([channel]) + (content if isinstance(content, bytes) else json.dumps(content).encode())
    length = bytes([len(body)]) if len(body) < 126 else b"\x7e" + struct.pack(">H", len(body))
    return b"\x82" + length + body


@contextmanager
def server(
    *messages: tuple[int, Any], refuses: int = 0, says: Any = None, waits_s: float = 0
) -> Iterator[tuple[ApiConnection, list[Any]]]:
    """Serve one command; yield the connection to it and the requests it got."""
    asked: list[Any] = []

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append((urlparse(self.path), dict(self.headers)))
            if refuses:
                body = says if isinstance(says, bytes) else json.dumps(says).encode()
                self.send_response(refuses)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                return
            key = hashlib.sha1((self.headers["Sec-WebSocket-Key"] + GUID).encode(), usedforsecurity=False).digest()
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            self.send_header("Sec-WebSocket-Accept", base64.b64encode(key).decode())
            self.send_header("Sec-WebSocket-Protocol", "v4.channel.k8s.io")
            self.end_headers()
            for message in messages:
                self.wfile.write(frame(*message))
            self.wfile.flush()
            sleep(waits_s)
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    host = f"http://127.0.0.1:{listening.server_port}"
    try:
        yield ApiConnection(urllib3.PoolManager(), host, lambda: "Bearer secret"), asked
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()


def run(connection: ApiConnection) -> None:
    run_in_pod(connection, namespace="gpub-x", pod="l-1-0", container="main", command=["sh", "-c", "a && b"])


def test_a_command_is_sent_with_the_token_and_its_words() -> None:
    with server((1, b"some output"), DONE) as (connection, asked):
        run(connection)
    [(address, headers)] = asked
    assert address.path == "/api/v1/namespaces/gpub-x/pods/l-1-0/exec"
    query = parse_qs(address.query)
    assert query["command"] == ["sh", "-c", "a && b"]
    assert query["container"] == ["main"]
    assert headers["Authorization"] == "Bearer secret"


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (((2, b"sh: no such\n file"), (3, {"status": "Failure", "message": "exit code 127"})), "sh: no such file"),
        (((3, {"status": "Failure", "message": "exit code 1"}),), "exit code 1"),
        ((), "it ended without a status"),
        (((1, b"x" * 5000), (3, {"status": "Failure"})), "x" * 200),
    ],
)
def test_a_command_that_fails_says_why(messages: Any, words: str) -> None:
    with server(*messages) as (connection, _), pytest.raises(CommandFailed) as failed:
        run(connection)
    assert str(failed.value) == words


@pytest.mark.parametrize(
    ("code", "says", "error", "words"),
    [
        (403, {"message": "pods/exec is forbidden"}, CommandFailed, "may not run commands there; run `manage.py kube"),
        (400, {"message": "container main is not valid"}, CommandFailed, "container main is not valid"),
        (404, b"<html>", CommandFailed, "HTTP 404"),
        (500, {"message": "no kubelet"}, ClusterUnreachable, "no kubelet"),
        (429, {}, ClusterUnreachable, "HTTP 429"),
    ],
)
def test_a_refusal_is_told_from_an_absent_cluster(code: int, says: Any, error: type[Exception], words: str) -> None:
    with server(refuses=code, says=says) as (connection, _), pytest.raises(error, match=words):
        run(connection)


def test_a_server_that_is_away_is_unreachable() -> None:
    connection = ApiConnection(urllib3.PoolManager(), "http://127.0.0.1:9", lambda: "")
    with pytest.raises(ClusterUnreachable, match="ConnectionRefusedError"):
        run(connection)


def test_a_command_that_goes_on_writing_is_given_up_in_time() -> None:
    with server((1, b"a"), (1, b"b"), waits_s=5) as (connection, _), pytest.raises(ClusterUnreachable, match="Timeout"):
        run_in_pod(connection, namespace="g", pod="p", container="main", command=["yes"], answer_s=0.3)


def test_a_command_in_the_background_is_one_word_of_a_shell() -> None:
    *shell, command = in_background("kill -USR1 1; echo 'a b'")
    assert shell[:2] == ["sh", "-c"]
    assert command == "kill -USR1 1; echo 'a b'"


def test_proxy_and_tls_are_those_of_the_connection() -> None:
    pool = urllib3.ProxyManager("http://proxy:3128", cert_reqs=ssl.CERT_NONE)
    options = connection_options(ApiConnection(pool, "https://north", lambda: ""), "")
    assert (options["proxy"], options["ssl"].verify_mode, options["additional_headers"]) == (
        "http://proxy:3128",
        ssl.CERT_NONE,
        {},
    )
    direct = connection_options(ApiConnection(urllib3.PoolManager(), "http://north", lambda: ""), "Bearer x")
    assert (direct["proxy"], direct["ssl"]) == (None, None)
