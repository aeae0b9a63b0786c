"""Whether a port is free, and whose it is when it is not."""

import errno
import socket
from contextlib import suppress
from pathlib import Path

from deploy.embedded.complaint import Complaint

EPHEMERAL_FROM = 32768  # above, the kernel hands ports to outgoing connections and a start fails at random


def need_free(host: str, port: int, *, what: str, option: str) -> None:
    """Pass when we can listen there; else say who does."""
    if not 0 < port < EPHEMERAL_FROM:
        raise Complaint(
            f"Port {port} for {what} is out of range: from {EPHEMERAL_FROM} on the system lends ports\n"
            f"to outgoing connections, and a server there fails now and then. make run {option}=8100"
        )
    if host in ("127.0.0.1", "0.0.0.0") and answers_at("::1", port):
        raise Complaint(
            f"Port {port}, needed for {what}, is in use{owner_of(port)}: whoever opens localhost would get there.\n"
            f"Stop that process, or choose another port: make run {option}={port + 100}"
        )
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as failure:
        if failure.errno == errno.EADDRINUSE:
            raise Complaint(
                f"Port {port}, needed for {what}, is in use{owner_of(port)}.\n"
                f"Stop that process, or choose another port: make run {option}={port + 100}"
            ) from failure
        raise Complaint(
            f"{what} cannot listen on {host}:{port}: {failure.strerror}.\n"
            "Choose an address of this machine and a port above 1023: make run HOST=127.0.0.1 PORT=8100"
        ) from failure


def answers_at(host: str, port: int) -> bool:
    """Tell whether somebody listens; nobody does where there is no IPv6."""
    with suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        return probe.connect_ex((host, port)) == 0
    return False


def owner_of(port: int) -> str:
    """Name the process that listens on a port, as far as we may know it."""
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
