"""Temporary installation with real servers and a migrated, empty database.

`python -m deploy.embedded.scratch <command> [arguments]` runs a command on one and exits with its status.
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
from deploy.embedded.postgres import PostgresCluster
from deploy.embedded.process import ProcessSpec
from deploy.embedded.product_processes import PYTHON, ProductInstallation
from deploy.embedded.roles import DATABASE, OWNER, WORKER, Server
from deploy.embedded.startup_error import StartupError
from deploy.embedded.supervisor import StopRequested, Supervisor
from deploy.embedded.valkey import Valkey

# The data are temporary, so no commit waits for the disk.
UNSAFE_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
EMPTY_DATABASE = "gpubroker_empty"
NO_PORT = 1


def fastest_directory() -> str | None:
    """Return a directory in memory if there is enough, else None.

    A cluster is a thousand small files.
    """
    with suppress(OSError):
        if shutil.disk_usage("/dev/shm").free > 4_000_000_000:
            return "/dev/shm"
    return None


def build_cache_variables() -> dict[str, str]:
    """Return variables that name our caller's build caches, since commands here have another home."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    named = os.environ.get("CONTROLPLANE")
    return {"XDG_CACHE_HOME": home} | ({"CONTROLPLANE": named} if named else {})


@dataclass(frozen=True)
class TemporaryInstallation:
    """Running temporary installation."""

    product: ProductInstallation
    supervisor: Supervisor

    def run(self, *command: str) -> int:
        """Run a command on a new, empty database, on this terminal; return its exit status."""
        server = self.product.server
        roles.drop_database(server, DATABASE)
        roles.clone_database(server, DATABASE, template=EMPTY_DATABASE)
        env = self.product.env(WORKER) | {"GPUBROKER_OWNER_DATABASE_URL": server.login(OWNER, DATABASE)}
        env |= build_cache_variables()
        spec = ProcessSpec("command", command, env, cwd=folders.CHECKOUT, uses_terminal=True)
        return self.supervisor.finish(spec).popen.returncode


@contextmanager
def scratch(*, durable: bool = False) -> Iterator[TemporaryInstallation]:
    """Create a temporary installation, yield it, and remove it.

    A `durable` one is on disk, and its commits wait for the disk.
    """
    os.umask(0o022)
    place = Path(tempfile.mkdtemp(prefix="gpubroker-scratch-", dir=None if durable else fastest_directory()))
    place.chmod(0o755)
    servers = account.unprivileged_account()
    places = folders.create_directories(place, servers=servers, products=None)
    supervisor = Supervisor(places.logs)
    try:
        programs, password = binaries.find_postgres(servers), places.data / "administrator"
        cluster = PostgresCluster(
            programs, places.postgres, places.sockets, password, servers, {} if durable else UNSAFE_SETTINGS
        )
        cluster.initialise()
        server = Server(cluster.url())
        valkey = Valkey(binaries.find_valkey(servers), places.valkey, places.sockets, servers, keep=False)
        supervisor.start(cluster.process_spec(), valkey.process_spec())
        product = ProductInstallation(places, server, valkey, "127.0.0.1", NO_PORT)
        roles.prepare_database(server)
        migrate = product.manage_command("migrate", "migrate", "--database", "owner", "--no-input", role=OWNER)
        supervisor.run(migrate)
        roles.rename_database(server, DATABASE, EMPTY_DATABASE)
        yield TemporaryInstallation(product, supervisor)
    finally:
        supervisor.stop()
        shutil.rmtree(place, ignore_errors=True)


def main(command: Sequence[str]) -> int:
    """Run one command; `python` is our own interpreter."""
    program = PYTHON if command[0] == "python" else command[0]
    try:
        with scratch() as ready:
            return ready.run(program, *command[1:])
    except StopRequested:
        return 130
    except StartupError as complaint:
        print(f"\n{complaint}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
