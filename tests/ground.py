"""What a test session stands on: which server, which database names, which turn."""

import fcntl
import hashlib
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from deploy.embedded import account, binaries, migrations, roles
from deploy.embedded.postgres import Cluster
from deploy.embedded.roles import Server
from deploy.embedded.scratch import CARELESS, quickest_place

CHECKOUT = Path(__file__).resolve().parents[1]
KEPT = CHECKOUT / "build" / "tests"
# Sessions are short, and a table that is analysed in one run and not in another makes tests differ.
STEADY = {"autovacuum": "off", "max_wal_senders": "0", "wal_level": "minimal", "log_min_messages": "fatal"}
# Several workers may each be at a test with a hundred threads.
ROOMY = {"max_connections": "1000"}


def folder() -> Path:
    """Return this session's own folder; the workers of a session share one."""
    if "TEST_SESSION" not in os.environ:
        os.environ["TEST_SESSION"] = tempfile.mkdtemp(prefix="gpubroker-test-", dir=quickest_place())
        os.environ["TEST_SESSION_PROCESS"] = str(os.getpid())
    return Path(os.environ["TEST_SESSION"])


@contextmanager
def turn(name: str) -> Iterator[None]:
    """Do something once at a time among the workers of this session."""
    with (folder() / name).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def worker_number() -> int:
    """Return this worker's number, for what must not be chosen twice."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def administrator() -> Path:
    """Return the file with the password of every test cluster, kept because the clusters are kept."""
    file = KEPT / "administrator"
    if not file.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        new = KEPT / f"administrator.{os.getpid()}"
        new.touch(mode=0o600)
        new.write_text(secrets.token_urlsafe(24))
        with suppress(FileExistsError):  # of two sessions that start at once, the first one wins
            os.link(new, file)
        new.unlink()
    return file


def foreign_server() -> str:
    """Return the administrator's login of a server that a person named; empty when we start our own."""
    return os.environ.get("DATABASE_URL", "")


@cache
def cluster() -> Cluster:
    """Return the session's embedded cluster, which need not run yet."""
    servers = account.unprivileged()
    programs = binaries.find_postgres(servers)
    places = folder()
    return Cluster(programs, places / "postgres", places, administrator(), servers, CARELESS | STEADY | ROOMY)


@cache
def server() -> Server:
    """Return the server to use: DATABASE_URL when a person named one, else the embedded one."""
    return Server(foreign_server() or cluster().url())


@cache
def template_name() -> str:
    """Name the database that has every migration and no row: those there were when this process looked first."""
    return f"gpubroker_template_{migrations.fingerprint()}"


def cluster_key() -> str:
    """Name what a kept cluster must match to be used again."""
    digest = hashlib.sha256(Path(roles.__file__).read_bytes() + roles.ROLES.read_bytes())
    return f"{cluster().programs.version}-{migrations.fingerprint()}-{digest.hexdigest()[:8]}"


def database_name(suffix: str) -> str:
    """Name a database of this session; two sessions on one server never meet."""
    folder()
    return f"gpubroker_test_{os.environ['TEST_SESSION_PROCESS']}_{suffix}"


def need_server() -> None:
    """Start the session's embedded server when nobody has yet."""
    if foreign_server():
        return
    with turn("starting"):
        known = folder() / "guardian"
        if not known.exists():
            known.write_text(str(_spawn_guardian()))
        while not cluster().answers():  # also one that answered already, on a machine that stood still
            if not _lives(int(known.read_text())):
                raise RuntimeError((folder() / "guardian.log").read_text())
            time.sleep(0.02)


def _lives(pid: int) -> bool:
    """Tell whether a process runs; one that only waits for its parent to notice does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _spawn_guardian() -> int:
    """Start the server's keeper: a process of its own, which outlives the worker that came first."""
    log = str(folder() / "guardian.log")
    writing = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "tests.guardian"],
        {**os.environ, "PYTHONPATH": str(CHECKOUT)},
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, log, writing, 0o600), (os.POSIX_SPAWN_DUP2, 1, 2)],
        setsid=True,
    )
