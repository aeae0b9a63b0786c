"""Commands in a running container, over the API server's WebSocket.

Only the official client's WebSocket library is used; authentication and TLS are those of our own connection.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any
from urllib.parse import urlencode

import msgspec

from broker.provisioners.base import ClusterUnreachable, CommandFailed
from broker.provisioners.kubernetes.client.api_connection import ApiConnection
from broker.provisioners.kubernetes.client.kinds import POD, ObjectRef
from broker.provisioners.kubernetes.client.objects import ApiStatus, CommandStatus

PROTOCOL = "v4.channel.k8s.io"
OUTPUT_CHANNELS, STATUS_CHANNEL = (1, 2), 3  # each message begins with its channel
CONNECT_S, ANSWER_S = 3.0, 10.0
FORBIDDEN = 403
FORBIDDEN_TEXT = "the broker may not run commands there; run `manage.py kube_setup` for the cluster again"
MAX_OUTPUT = 2000  # bytes of a failed command's output that are kept
TLS_FIELDS = {  # of the connection pool, and as the WebSocket library calls them
    "ca_certs": "ca_certs",
    "cert_file": "certfile",
    "key_file": "keyfile",
    "cert_reqs": "cert_reqs",
    "server_hostname": "server_hostname",
}


# Writes to the log of the container's program where that is possible, and does not hold the connection open.
IN_BACKGROUND = 'out=/proc/1/fd/1; [ -w "$out" ] || out=/dev/null; sh -c "$0" >"$out" 2>&1 </dev/null &'


def in_background(command: str) -> list[str]:
    """Return the command that starts a shell line and does not wait for its end."""
    return ["sh", "-c", IN_BACKGROUND, command]


def run_in_pod(connection: ApiConnection, *, namespace: str, pod: str, container: str, command: Sequence[str]) -> None:
    """Run a command in a container and wait for its end.

    Raises CommandFailed if it fails or may not be run, ClusterUnreachable if the cluster does not answer.
    """
    import websocket

    asked = [("container", container), ("stdout", "true"), ("stderr", "true")]
    query = urlencode([*asked, *(("command", word) for word in command)])
    address = f"{connection.host.replace('http', 'ws', 1)}{ObjectRef(POD, pod, namespace).path}/exec?{query}"
    token = connection.authorization()
    try:
        opened = websocket.create_connection(
            address,
            timeout=CONNECT_S,
            subprotocols=[PROTOCOL],
            header={"Authorization": token} if token else {},
            sslopt=_tls_options(connection),
            suppress_origin=True,
            **_proxy_options(connection),
        )
        with closing(opened):
            opened.settimeout(ANSWER_S)
            status, output = _read_status(_messages(opened))
    except websocket.WebSocketBadStatusException as refused:
        raise _refusal(refused.status_code, refused.resp_body) from refused
    except (websocket.WebSocketException, OSError) as error:
        raise ClusterUnreachable(f"{type(error).__name__}: {error}"[:200]) from error
    if status.status != "Success":
        raise CommandFailed((output or status.message or "it ended without a status")[:200])


def _messages(opened: Any) -> Iterator[bytes]:
    """Yield the messages of a command until it ends."""
    import websocket

    try:
        while message := opened.recv():
            yield message if isinstance(message, bytes) else message.encode()
    except websocket.WebSocketConnectionClosedException:
        return


def _read_status(messages: Iterator[bytes]) -> tuple[CommandStatus, str]:
    """Return how a command ended, and the beginning of its output."""
    output, status = b"", CommandStatus()
    for message in messages:
        channel, content = message[0], message[1:]
        if channel == STATUS_CHANNEL:
            status = msgspec.json.decode(content, type=CommandStatus)
        elif channel in OUTPUT_CHANNELS and len(output) < MAX_OUTPUT:
            output += content
    return status, " ".join(output[:MAX_OUTPUT].decode(errors="replace").split())


def _refusal(code: int, body: bytes | None) -> Exception:
    """Return the error for a server that did not open the connection."""
    try:
        text = msgspec.json.decode(body or b"", type=ApiStatus).message
    except msgspec.DecodeError:
        text = ""
    if code == FORBIDDEN:
        return CommandFailed(FORBIDDEN_TEXT)
    why = text or f"HTTP {code}"
    return CommandFailed(why[:200]) if 400 <= code < 500 and code != 429 else ClusterUnreachable(why[:200])


def _tls_options(connection: ApiConnection) -> Mapping[str, Any]:
    given = connection.pool.connection_pool_kw
    found = {ours: given[theirs] for theirs, ours in TLS_FIELDS.items() if given.get(theirs)}
    if given.get("assert_hostname") is False:
        found["check_hostname"] = False
    return found


def _proxy_options(connection: ApiConnection) -> Mapping[str, Any]:
    if (proxy := connection.pool.proxy) is None:
        return {"http_no_proxy": ["*"]}  # not what the environment says: our connection does not read that either
    return {"http_proxy_host": proxy.host, "http_proxy_port": proxy.port, "proxy_type": "http"}
