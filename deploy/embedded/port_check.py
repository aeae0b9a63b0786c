"""Check that a port is free, and find which process uses it."""

import errno
import socket
from contextlib import suppress
from pathlib import Path

from deploy.embedded.startup_error import StartupError

FIRST_EPHEMERAL_PORT = 32768  # above, the kernel uses ports for outgoing connections, and starts fail at random


def parse_port(text: str) -> int:
    """Return the port of a person's PORT; live events need the next one too."""
    if text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < FIRST_EPHEMERAL_PORT - 1:
        return int(text)
    raise StartupError(
        f"PORT={text} is not a port that gpubroker can use: choose a number from 1 to {FIRST_EPHEMERAL_PORT - 2}, "
        "for example make run PORT=8100."
    )


def require_free_port(host: str, port: int, *, what: str, option: str) -> None:
    """Raise StartupError unless we can listen on the port."""
    if not 0 < port < FIRST_EPHEMERAL_PORT:
        raise StartupError(
            f"Port {port} for {what} is out of range: choose one below {FIRST_EPHEMERAL_PORT}, from where on the "
            f"system lends ports to outgoing connections, for example make run {option}=8100."
        )
    if host in ("127.0.0.1", "0.0.0.0") and is_listening("::1", port):
        raise _port_in_use(port, what=what, option=option)  # whoever opens localhost would get there
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as failure:
        if failure.errno == errno.EADDRINUSE:
            raise _port_in_use(port, what=what, option=option) from failure
        raise StartupError(
            f"{host}:{port} cannot be used for {what} ({failure.strerror}): choose an address of this machine "
            "and a port above 1023, for example make run HOST=127.0.0.1 PORT=8100."
        ) from failure


def _port_in_use(port: int, *, what: str, option: str) -> StartupError:
    return StartupError(
        f"Port {port}, needed for {what}, is in use{port_owner(port)}: "
        f"stop that process, or choose another port with make run {option}={port + 100}."
    )


def is_listening(host: str, port: int) -> bool:
    """Return whether a process listens there; False without IPv6."""
    with suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        return probe.connect_ex((host, port)) == 0
    return False


def port_owner(port: int) -> str:
    """Return the name of the process that listens on a port, if visible."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                    inodes.add(f"socket:[{fields[9]}]")
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(str(link.readlink()) in inodes for link in (process / "fd").iterdir()):
                name = (process / "comm").read_text().strip()
                return f" by {name} (process {process.name})"
    return ""
