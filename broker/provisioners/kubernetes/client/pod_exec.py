"""Commands in a running container that end soon, over the API server's WebSocket."""

from collections.abc import Iterator, Sequence

import msgspec
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from broker.provisioners.base import ClusterUnreachable, CommandFailed
from broker.provisioners.kubernetes.client.api_connection import ApiConnection
from broker.provisioners.kubernetes.client.exec_request import connection_options, exec_url, refusal_message
from broker.provisioners.kubernetes.client.objects import CommandStatus
from ports import clock

PROTOCOL = Subprotocol("v4.channel.k8s.io")
OUTPUT_CHANNELS, STATUS_CHANNEL = (1, 2), 3  # each message begins with its channel
CONNECT_S, ANSWER_S = 3.0, 10.0
FORBIDDEN = 403
FORBIDDEN_TEXT = "the broker may not run commands there; run `manage.py kube_setup` for the cluster again"
MAX_MESSAGE = 1024 * 1024  # bytes
MAX_OUTPUT = 2000  # bytes of a failed command's output that are kept

# Process 1 may be a shell that runs the program, and then takes no signal: the program is its first child. The command
# writes to the log of the container's program where that is possible, and does not hold the connection open. It waits
# a second: a command that ends its container at once would end the shell that starts it too, which reads as a failure.
IN_BACKGROUND = """
pid=1
while read -r name <"/proc/$pid/comm" && case $name in sh|ash|bash|dash) ;; *) false ;; esac; do
  child=; read -r child others <"/proc/$pid/task/$pid/children"
  [ -n "$child" ] || break
  pid=$child
done 2>/dev/null
export GPUBROKER_PROGRAM_PID="$pid"
out=/proc/1/fd/1; [ -w "$out" ] || out=/dev/null
{ sleep 1 2>/dev/null; exec sh -c "$0"; } >"$out" 2>&1 </dev/null &
"""


def in_background(command: str) -> list[str]:
    """Return the command that starts a shell line and does not wait for its end."""
    return ["sh", "-c", IN_BACKGROUND, command]


def run_in_pod(
    connection: ApiConnection,
    *,
    namespace: str,
    pod: str,
    container: str,
    command: Sequence[str],
    answer_s: float = ANSWER_S,
) -> None:
    """Run a command in a container and wait at most `answer_s` seconds.

    Raises CommandFailed if it fails or may not be run, ClusterUnreachable if the cluster does not answer.
    """
    streams = ("stdout", "stderr")
    url = exec_url(connection, namespace=namespace, pod=pod, container=container, command=command, streams=streams)
    options = connection_options(connection, connection.authorization())
    try:
        with connect(url, subprotocols=[PROTOCOL], open_timeout=CONNECT_S, max_size=MAX_MESSAGE, **options) as opened:
            status, output = _read_status(_messages(opened, until=clock.monotonic() + answer_s))
    except InvalidStatus as refused:
        raise _refusal(refused.response.status_code, refused.response.body) from refused
    except (OSError, TimeoutError, InvalidHandshake, InvalidURI, EOFError) as error:
        raise ClusterUnreachable(f"{type(error).__name__}: {error}"[:200]) from error
    if status.status != "Success":
        raise CommandFailed((output or status.message or "it ended without a status")[:200])


def _messages(opened: ClientConnection, *, until: float) -> Iterator[bytes]:
    """Yield the messages of a command until it ends; TimeoutError if it takes longer."""
    try:
        while True:
            message = opened.recv(timeout=max(until - clock.monotonic(), 0))
            yield message.encode() if isinstance(message, str) else message
    except ConnectionClosed:
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


def _refusal(code: int, body: bytes | bytearray | None) -> Exception:
    """Return the error for a server that did not open the connection."""
    if code == FORBIDDEN:
        return CommandFailed(FORBIDDEN_TEXT)
    why = refusal_message(body) or f"HTTP {code}"
    return CommandFailed(why[:200]) if 400 <= code < 500 and code != 429 else ClusterUnreachable(why[:200])
