"""WebSocket to `pods/exec` with a terminal, in the subprotocols v5 and v4 of Kubernetes.

The first byte of a message is its channel. v5 only adds that a client may close its input, which a
terminal never does; API servers before 1.30 know v4 alone.
"""

import json

import msgspec
from asgiref.sync import sync_to_async
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.typing import Subprotocol

from broker.provisioners.kubernetes.client.api_connection import ApiConnection
from broker.provisioners.kubernetes.client.exec_request import connection_options, exec_url, refusal_message
from broker.provisioners.terminals import TerminalSize, TerminalUnavailable

SUBPROTOCOLS = (Subprotocol("v5.channel.k8s.io"), Subprotocol("v4.channel.k8s.io"))
INPUT, OUTPUT, ERRORS, STATUS, RESIZE = range(5)
OPEN_TIMEOUT_S, CLOSE_TIMEOUT_S, PING_INTERVAL_S = 10.0, 2.0, 20.0
MAX_MESSAGE = 1024 * 1024  # bytes
MAX_ERROR_LENGTH = 200
EXIT_CODE_CAUSE = "ExitCode"


class ExecStream:
    """A command that runs in a container, with a terminal."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._end_reason = ""

    @property
    def end_reason(self) -> str:
        """Return how the command ended, in words; empty while it runs."""
        return self._end_reason

    async def read(self) -> bytes:
        """Wait for output; empty once the command has ended."""
        while True:
            try:
                message = await self._connection.recv()
            except ConnectionClosed:
                self._end_reason = self._end_reason or "the cluster closed the connection"
                return b""
            frame = message.encode() if isinstance(message, str) else message
            channel, content = frame[0] if frame else OUTPUT, frame[1:]
            if channel == STATUS:
                self._end_reason = describe_exit(content)
            elif channel in (OUTPUT, ERRORS) and content:
                return content

    async def write(self, keys: bytes) -> None:
        """Send what was typed."""
        await self._send(INPUT, keys)

    async def resize(self, size: TerminalSize) -> None:
        """Set the size of the terminal."""
        await self._send(RESIZE, json.dumps({"Width": size.columns, "Height": size.rows}).encode())

    async def close(self) -> None:
        """Close the connection, which ends the command."""
        self._end_reason = self._end_reason or "closed"
        await self._connection.close()

    async def _send(self, channel: int, content: bytes) -> None:
        try:
            await self._connection.send(bytes([channel]) + content)
        except ConnectionClosed:
            self._end_reason = self._end_reason or "the cluster closed the connection"


async def open_exec_stream(
    api: ApiConnection, *, namespace: str, pod: str, container: str, command: tuple[str, ...]
) -> ExecStream:
    """Start a command in a container; raise TerminalUnavailable with the reason."""
    streams = ("stdin", "stdout", "tty")
    url = exec_url(api, namespace=namespace, pod=pod, container=container, command=command, streams=streams)
    token = await sync_to_async(api.authorization, thread_sensitive=False)()  # may start a credential plugin
    try:
        connection = await connect(
            url,
            subprotocols=SUBPROTOCOLS,
            **connection_options(api, token),
            open_timeout=OPEN_TIMEOUT_S,
            close_timeout=CLOSE_TIMEOUT_S,
            ping_interval=PING_INTERVAL_S,
            max_size=MAX_MESSAGE,
        )
    except InvalidStatus as error:
        body = bytes(error.response.body or b"")
        raise TerminalUnavailable(describe_refusal(error.response.status_code, body)) from None
    except (OSError, TimeoutError, InvalidHandshake, InvalidURI, EOFError) as error:
        raise TerminalUnavailable(f"The cluster did not answer: {type(error).__name__}. Try again.") from None
    return ExecStream(connection)


def describe_exit(status: bytes) -> str:
    """Return in words how a command ended, from the Status that the API server sends."""
    try:
        found = msgspec.json.decode(status)
    except msgspec.DecodeError:
        return "the shell ended"
    if not isinstance(found, dict) or found.get("status") == "Success":
        return "the shell exited with code 0"
    details = found.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    for cause in causes if isinstance(causes, list) else ():
        if isinstance(cause, dict) and cause.get("reason") == EXIT_CODE_CAUSE:
            return f"the shell exited with code {str(cause.get('message', ''))[:20]}"
    return f"the cluster ended the shell: {found.get('message', '')}"[:MAX_ERROR_LENGTH]


def describe_refusal(status: int, body: bytes) -> str:
    """Return in words why the API server refused, and what to do."""
    if status in (401, 403):
        return "The cluster does not allow terminals. Its operator must apply the broker's current rights."
    if status == 404:
        return "The lease's pod does not exist any more. Open the lease's page to see its state."
    return f"The cluster refused the terminal (HTTP {status}): {refusal_message(body)}"[:MAX_ERROR_LENGTH]
