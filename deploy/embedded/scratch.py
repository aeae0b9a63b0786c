"""A throwaway installation: real servers, a migrated and empty database, gone afterwards.

`python -m deploy.embedded.scratch <command> [arguments]` runs a command on one and ends as it ended.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from deploy.embedded import account, binaries, folders, roles
from deploy.embedded.complaint import Complaint
from deploy.embedded.postgres import Cluster
from deploy.embedded.process import Part
from deploy.embedded.product import PYTHON, Product
from deploy.embedded.roles import DATABASE, OWNER, WORKER, Server
from deploy.embedded.supervisor import Stopped, Supervisor
from deploy.embedded.valkey import Valkey

# Nothing here outlives the command, so nothing waits for the disk.
CARELESS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
EMPTY = "gpubroker_empty"
NO_PORT = 1


def quickest_place() -> str | None:
    """Return memory that looks like a disk when there is plenty: a cluster is a thousand small files."""
    with suppress(OSError):
        if shutil.disk_usage("/dev/shm").free > 4_000_000_000:
            return "/dev/shm"
    return None


def kept_programs() -> dict[str, str]:
    """Return where whoever started us keeps what took long to build: a command here has another home."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    named = os.environ.get("CONTROLPLANE")
    return {"XDG_CACHE_HOME": home} | ({"CONTROLPLANE": named} if named else {})


@dataclass(frozen=True)
class Scratch:
    """A running throwaway installation."""

    product: Product
    supervisor: Supervisor

    def run(self, *command: str) -> int:
        """Run a command on a new, empty database, with this terminal; return its exit status."""
        server = self.product.server
        roles.drop_database(server, DATABASE)
        roles.clone_database(server, DATABASE, template=EMPTY)
        env = self.product.env(WORKER) | {"GPUBROKER_OWNER_DATABASE_URL": server.login(OWNER, DATABASE)}
        env |= kept_programs()
        part = Part("command", command, env, cwd=folders.CHECKOUT, attached=True)
        return self.supervisor.finish(part).popen.returncode


@contextmanager
def scratch(*, durable: bool = False) -> Iterator[Scratch]:
    """Make it, hand it out, take it away; a `durable` one stands on the disk, and its commits wait for it."""
    os.umask(0o022)
    place = Path(tempfile.mkdtemp(prefix="gpubroker-scratch-", dir=None if durable else quickest_place()))
    place.chmod(0o755)
    servers = account.unprivileged()
    places = folders.prepare(place, servers=servers, products=None)
    supervisor = Supervisor(places.logs)
    try:
        programs, password = binaries.find_postgres(servers), places.data / "administrator"
        cluster = Cluster(
            programs, places.postgres, places.sockets, password, servers, {} if durable else CARELESS
        )
        cluster.initialise()
        server = Server(cluster.url())
        valkey = Valkey(binaries.find_valkey(servers), places.valkey, places.sockets, servers, keep=False)
        supervisor.start(cluster.part(), valkey.part())
        product = Product(places, server, valkey, "127.0.0.1", NO_PORT)
        roles.prepare_database(server)
        migrate = product.manage("migrate", "migrate", "--database", "owner", "--no-input", role=OWNER)
        supervisor.run(migrate)
        roles.rename_database(server, DATABASE, EMPTY)
        yield Scratch(product, supervisor)
    finally:
        supervisor.stop()
        shutil.rmtree(place, ignore_errors=True)


def main(command: Sequence[str]) -> int:
    """Run one command; `python` means ours."""
    program = PYTHON if command[0] == "python" else command[0]
    try:
        with scratch() as ready:
            return ready.run(program, *command[1:])
    except Stopped:
        return 130
    except Complaint as complaint:
        print(f"\n{complaint}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
