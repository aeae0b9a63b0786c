"""Serve the tests' PostgreSQL until it is idle: `python -m tests.serve_postgres`."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
from psycopg import sql

from deploy.embedded.account import give_ownership
from deploy.embedded.process import Process
from deploy.embedded.roles import Server, drop_database, read_comment
from deploy.embedded.supervisor import StopRequested, Supervisor
from tests import postgres_server
from tests.postgres_server import KEPT, process_start
from tests.session import CHECKOUT

IDLE_S = float(os.environ.get("TEST_SERVER_IDLE_S", 600))
KEPT_CLUSTERS, KEPT_TEMPLATES = 4, 4
KEEP_AFTER_S = 3.0
SHARED_CATALOGS = ("pg_database", "pg_shdepend", "pg_shdescription", "pg_db_role_setting")


class TestServer:
    """The server process: start, clean up after sessions, keep templates."""

    __test__ = False  # not a class of tests

    def __init__(self) -> None:
        self.cluster, self.folder = postgres_server.cluster(), postgres_server.folder()
        self.kept = KEPT / "clusters" / postgres_server.key()
        self.supervisor = Supervisor(self.folder)
        self.process: Process
        self.known: set[str] = set()
        self.ended = False

    def start(self) -> None:
        """Start from the cluster that an earlier server kept."""
        give_ownership(self.folder, self.cluster.account)
        if self.kept.is_dir():
            copy(self.kept, self.cluster.data)
        self.cluster.initialise()
        self.serve()
        self.known = set(self.templates())

    def serve(self) -> None:
        """Start PostgreSQL on the cluster there is."""
        (self.process,) = self.supervisor.launch(self.cluster.process_spec())
        self.supervisor.wait_until_ready([self.process])

    @property
    def server(self) -> Server:
        return Server(self.cluster.url())

    def databases(self, prefix: str) -> Iterator[str]:
        """Yield the databases whose name begins so, the oldest first."""
        with self.server.as_administrator() as connection:
            names = [row[0] for row in connection.execute("SELECT datname FROM pg_database ORDER BY oid")]
        yield from (str(name) for name in names if str(name).startswith(prefix))

    def templates(self) -> list[str]:
        """List the databases that are migrated to the end."""
        return [name for name in self.databases("gpubroker_template_") if read_comment(self.server, name) == "ready"]

    def watch(self) -> None:
        """Stop after a while without sessions."""
        before, used, looked = set[str](), time.monotonic(), True
        while self.process.is_alive:
            self.supervisor.pause(1)
            with postgres_server.exclusive():
                live = self.live_sessions()
                if before - live:
                    self.clean_up(live)
                if live:
                    before, used, looked = live, time.monotonic(), False
                    continue
                before, idle = live, time.monotonic() - used
                if not looked and idle >= min(KEEP_AFTER_S, IDLE_S):
                    self.keep()
                    looked = True
                if idle >= IDLE_S or not CHECKOUT.is_dir():
                    return self.end()

    def live_sessions(self) -> set[str]:
        """Return the sessions that use the server; forget those whose process is gone."""
        live = set()
        for file in (self.folder / "sessions").glob("*"):
            said = json.loads(file.read_text())
            if process_start(int(file.name.partition("_")[0])) == said["started"]:
                live.add(file.name)
            else:
                shutil.rmtree(said["folder"], ignore_errors=True)
                file.unlink()
        return live

    def clean_up(self, live: set[str]) -> None:
        """Drop the databases of sessions that are over."""
        left = [name for name in self.databases("gpubroker_test_") if not belongs_to(name, live)]
        for name in left:
            drop_database(self.server, name)
        if left:
            with self.server.as_administrator() as connection:
                for catalog in SHARED_CATALOGS:  # nobody else does: autovacuum is off
                    connection.execute(sql.SQL("VACUUM {}").format(sql.Identifier(catalog)))

    def keep(self) -> None:
        """Copy the cluster beside the checkout when a database was migrated since the last copy."""
        if set(self.templates()) <= self.known:
            return
        for name in self.templates()[:-KEPT_TEMPLATES]:
            drop_database(self.server, name)
        self.known = set(self.templates())
        self.supervisor.stop()
        keep(self.cluster.data, self.kept)
        self.serve()

    def end(self) -> None:
        """Stop, and leave nothing but the kept cluster."""
        self.supervisor.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.ended = True


def belongs_to(database: str, sessions: set[str]) -> bool:
    """Return whether a database belongs to one of these sessions."""
    return any(database.startswith(f"gpubroker_test_{name}_") for name in sessions)


def copy(source: Path, target: Path) -> None:
    """Copy a stopped cluster with its owner and modes."""
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


def keep(cluster: Path, kept: Path) -> None:
    """Keep a cluster for the next server, and only a few of them."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    new = kept.with_name(f"{kept.name}.{os.getpid()}.new")
    copy(cluster, new)
    shutil.rmtree(kept, ignore_errors=True)
    with suppress(OSError):  # another server was faster, and its cluster is as good
        new.rename(kept)
    shutil.rmtree(new, ignore_errors=True)
    by_age = sorted(kept.parent.iterdir(), key=lambda entry: entry.stat().st_mtime)
    for old in by_age[:-KEPT_CLUSTERS]:
        shutil.rmtree(old, ignore_errors=True)


def main() -> int:
    """Serve until no session needs the server, or it is stopped."""
    server = TestServer()
    try:
        server.start()
        server.watch()
    except StopRequested:
        pass
    finally:
        if not server.ended:
            with postgres_server.exclusive():
                server.end()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except psycopg.Error as failure:
        sys.exit(str(failure))
