"""The embedded Valkey: the queue's hints, kept on disk, reached over a unix socket only."""

import socket
from dataclasses import dataclass
from pathlib import Path

from deploy.embedded.account import Account
from deploy.embedded.postgres import PLAIN_ENV
from deploy.embedded.process import Part, Process


@dataclass(frozen=True)
class Valkey:
    """A data folder of Valkey and the program that serves it."""

    program: str
    data: Path
    sockets: Path
    account: Account | None = None
    keep: bool = True

    @property
    def socket(self) -> Path:
        return self.sockets / "valkey.sock"

    @property
    def url(self) -> str:
        """Return the address as Celery wants it."""
        return f"redis+socket://{self.socket}"

    def part(self) -> Part:
        """Describe the running server."""
        command = [self.program, "--port", "0", "--dir", str(self.data)]
        command += ["--unixsocket", str(self.socket), "--unixsocketperm", "700"]
        # Evicting a hint to save memory would lose it silently; refusing to take it is heard.
        command += ["--maxmemory-policy", "noeviction", "--save", ""]
        command += ["--appendonly", "yes" if self.keep else "no", "--appendfsync", "everysec"]
        return Part("valkey", command, PLAIN_ENV, ready=self.answers, account=self.account)

    def answers(self, process: Process | None = None) -> bool:
        """Tell whether it says PONG; while it still loads its file it does not."""
        try:
            return self.say(b"PING").startswith(b"+PONG")
        except OSError:
            return False

    def say(self, command: bytes) -> bytes:
        """Send one command and return the start of its answer."""
        with socket.socket(socket.AF_UNIX) as door:
            door.settimeout(2)
            door.connect(str(self.socket))
            door.sendall(command + b"\r\n")
            return door.recv(256)
