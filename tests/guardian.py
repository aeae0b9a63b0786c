"""Keep the test session's PostgreSQL running until the session ends, however it ends."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg

from deploy.embedded.account import give
from deploy.embedded.roles import Server, drop_database, note
from deploy.embedded.supervisor import Stopped, Supervisor
from tests import ground

KEPT_CLUSTERS = 4


def main() -> int:
    """Start from a kept cluster, serve, keep the cluster when it learnt something."""
    cluster, kept = ground.cluster(), ground.KEPT / "clusters" / ground.cluster_key()
    session, supervisor = Path(f"/proc/{os.environ['TEST_SESSION_PROCESS']}"), Supervisor(ground.folder())
    give(ground.folder(), cluster.account)
    learnt = False
    try:
        if kept.is_dir():
            copy(kept, cluster.data)
        cluster.initialise()
        supervisor.start(cluster.part())
        while session.exists():
            supervisor.pause(1)
    except Stopped:
        learnt = not kept.exists() and tidy(ground.server())
    finally:
        supervisor.stop()
    if learnt:
        keep(cluster.data, kept)
    shutil.rmtree(ground.folder(), ignore_errors=True)
    return 0


def tidy(server: Server) -> bool:
    """Drop what the tests made; tell whether a finished template is left."""
    with server.as_administrator() as connection:
        names = [str(row[0]) for row in connection.execute("SELECT datname FROM pg_database")]
    for name in names:
        if name.startswith("gpubroker_test_"):
            drop_database(server, name)
    return note(server, ground.template_name()) == "ready"


def copy(source: Path, target: Path) -> None:
    """Copy a stopped cluster with its owner and modes."""
    subprocess.run(["cp", "-a", str(source), str(target)], check=True)


def keep(cluster: Path, kept: Path) -> None:
    """Keep a cluster for the next session, and only a few of them."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    new = kept.with_name(f"{kept.name}.{os.getpid()}.new")
    copy(cluster, new)
    try:
        new.rename(kept)
    except OSError:  # another session was faster, and its cluster is as good
        shutil.rmtree(new)
    by_age = sorted(kept.parent.iterdir(), key=lambda entry: entry.stat().st_mtime)
    for old in by_age[:-KEPT_CLUSTERS]:
        shutil.rmtree(old, ignore_errors=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except psycopg.Error as failure:
        sys.exit(str(failure))
