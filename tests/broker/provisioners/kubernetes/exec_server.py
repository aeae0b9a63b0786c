"""Server of `pods/exec` for tests, as Kubernetes documents its subprotocol.

It stands in for an API server with a kubelet behind it, of which the test control plane has none. Its
shell echoes what is typed; `exit N` ends it, and `size` prints the latest size.
"""

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from websockets.asyncio.server import Request, Response, ServerConnection, serve

INPUT, OUTPUT, ERRORS, STATUS, RESIZE = range(5)
EVERY_VERSION = ("v5.channel.k8s.io", "v4.channel.k8s.io")


class ExecServer:
    """The server, with what it was asked."""

    def __init__(self, *, refusal: tuple[HTTPStatus, dict[str, Any]] | None = None) -> None:
        self.refusal = refusal
        self.paths: list[str] = []
        self.queries: list[list[tuple[str, str]]] = []
        self.authorizations: list[str] = []
        self.subprotocols: list[str | None] = []
        self.address = ""

    @asynccontextmanager
    async def up(
        self, *, versions: tuple[str, ...] = EVERY_VERSION, tls: ssl.SSLContext | None = None
    ) -> AsyncIterator["ExecServer"]:
        """Serve on a free port of this machine."""
        async with serve(
            self._talk, "127.0.0.1", 0, subprotocols=list(versions), process_request=self._check, ssl=tls
        ) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            self.address = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
            yield self

    def _check(self, connection: ServerConnection, request: Request) -> Response | None:
        address = urlsplit(request.path)
        self.paths.append(address.path)
        self.queries.append(parse_qsl(address.query))
        self.authorizations.append(request.headers.get("Authorization", ""))
        if self.refusal is None:
            return None
        status, body = self.refusal
        return connection.respond(status, json.dumps(body))

    async def _talk(self, connection: ServerConnection) -> None:
        self.subprotocols.append(connection.subprotocol)
        size, line = {}, b""
        await connection.send(bytes([OUTPUT]))  # the first message of every stream is empty
        await connection.send(bytes([OUTPUT]) + b"$ ")
        async for message in connection:
            assert isinstance(message, bytes)
            channel, content = message[0], message[1:]
            if channel == RESIZE:
                size = json.loads(content)
                continue
            assert channel == INPUT
            await connection.send(bytes([OUTPUT]) + content)
            line += content
            if line.endswith(b"\r"):
                words, line = line.decode().split(), b""
                if words[:1] == ["size"]:
                    await connection.send(bytes([OUTPUT]) + f"{size['Width']}x{size['Height']}\r\n".encode())
                elif words[:1] == ["complain"]:
                    await connection.send(bytes([ERRORS]) + b"an error\r\n")
                elif words[:1] == ["vanish"]:
                    connection.transport.abort()
                elif words[:1] == ["exit"]:
                    await connection.send(bytes([STATUS]) + json.dumps(exit_status(int(words[1]))).encode())
                    return


def exit_status(code: int) -> dict[str, Any]:
    """Return the Status that a kubelet sends for an exit code."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
