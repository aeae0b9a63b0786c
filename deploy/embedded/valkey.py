"""Embedded Valkey: the task queue, persisted, reachable over a unix socket only."""

import socket
from dataclasses import dataclass
from pathlib import Path

from deploy.embedded.account import UnprivilegedAccount
from deploy.embedded.postgres import PLAIN_ENV
from deploy.embedded.process import Process, ProcessSpec


@dataclass(frozen=True)
class Valkey:
    """Valkey data directory and the program that serves it."""

    program: str
    data: Path
    sockets: Path
    account: UnprivilegedAccount | None = None
    keep: bool = True

    @property
    def socket(self) -> Path:
        return self.sockets / "valkey.sock"

    @property
    def url(self) -> str:
        """URL in Celery's format."""
        return f"redis+socket://{self.socket}"

    def process_spec(self) -> ProcessSpec:
        """Return the specification of the server process."""
        command = [self.program, "--port", "0", "--dir", str(self.data)]
        command += ["--unixsocket", str(self.socket), "--unixsocketperm", "700"]
        # Evicting a message to save memory would lose it silently; a refused write raises an error.
        command += ["--maxmemory-policy", "noeviction", "--save", ""]
        command += ["--appendonly", "yes" if self.keep else "no", "--appendfsync", "everysec"]
        return ProcessSpec("valkey", command, PLAIN_ENV, ready=self.responds, account=self.account)

    def responds(self, process: Process | None = None) -> bool:
        """Return whether PING succeeds; it does not while the server loads its file."""
        try:
            return self.send_command(b"PING").startswith(b"+PONG")
        except OSError:
            return False

    def send_command(self, command: bytes) -> bytes:
        """Send one command and return the start of its reply."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(2)
            connection.connect(str(self.socket))
            connection.sendall(command + b"\r\n")
            return connection.recv(65_536)
