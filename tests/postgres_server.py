"""Find or start the tests' PostgreSQL of this checkout.

A server belongs to one checkout and to one version of PostgreSQL and of the roles. Migrated databases in it are named
by a hash of what makes them, so that a change of a migration needs a new database and no new server.
"""

import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from deploy.embedded import account, binaries, migrations, roles
from deploy.embedded.postgres import PostgresCluster
from deploy.embedded.roles import Server
from deploy.embedded.scratch import UNSAFE_SETTINGS
from tests import session
from tests.session import CHECKOUT

KEPT = CHECKOUT / "build" / "tests"
# Sessions are short, and a table that is analysed in one run and not in another makes tests differ.
STEADY = {"autovacuum": "off", "max_wal_senders": "0", "wal_level": "minimal", "log_min_messages": "fatal"}
# Several workers may each be at a test with a hundred threads; what is written is in memory.
ROOMY = {"max_connections": "1000", "max_wal_size": "512MB"}
SETTINGS = UNSAFE_SETTINGS | STEADY | ROOMY
ROOM_FOR_SERVERS = 4_000_000_000
DEFINES = re.compile(rb"^\s*(?:CREATE|ALTER|DROP|GRANT|REVOKE)\b", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class RunningServer:
    """The process that serves, as a file in the server's folder names it."""

    pid: int
    started: str

    @property
    def runs(self) -> bool:
        return process_start(self.pid) == self.started


def process_start(pid: int) -> str:
    """Return a process's start time; empty when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def given_server() -> str:
    """Return the login of DATABASE_URL; empty without it."""
    return os.environ.get("DATABASE_URL", "")


@cache
def folder() -> Path:
    """Name the server's folder, by checkout, key and purpose."""
    shared_memory = Path("/dev/shm")
    roomy = shared_memory.is_dir() and shutil.disk_usage(shared_memory).total > ROOM_FOR_SERVERS
    text = f"{CHECKOUT} {os.environ.get('TEST_SERVER', '')} {key()}"
    place = shared_memory if roomy else Path(tempfile.gettempdir())
    return place / f"gpubroker-tests-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


@contextmanager
def exclusive() -> Iterator[None]:
    """Hold what a session takes to come in, and the server takes to end."""
    file = session.folder() / "server.lock" if given_server() else folder().with_suffix(".lock")
    with file.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def running() -> RunningServer | None:
    """Return the running server, or None."""
    try:
        found = RunningServer(**json.loads((folder() / "server.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return found if found.runs else None


def password_file() -> Path:
    """Return the password file of all test clusters."""
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


@cache
def _programs() -> binaries.PostgresPrograms:
    return binaries.find_postgres(account.unprivileged_account())


@cache
def key() -> str:
    """Summarise what a server must match to be used: programs, roles, settings and password."""
    digest = hashlib.sha256(Path(roles.__file__).read_bytes() + roles.ROLES.read_bytes())
    digest.update(f"{SETTINGS} {_programs().folder}".encode() + password_file().read_bytes())
    return f"{_programs().version}-{digest.hexdigest()[:12]}"


@cache
def cluster() -> PostgresCluster:
    """Return the embedded cluster of this checkout's tests, which need not run yet."""
    place = folder()
    owner = account.unprivileged_account()
    return PostgresCluster(_programs(), place / "postgres", place, password_file(), owner, SETTINGS)


@cache
def server() -> Server:
    """Return the server of DATABASE_URL if set, else the embedded one."""
    return Server(given_server() or cluster().url())


@cache
def template_name() -> str:
    """Name the migrated template database."""
    digest = hashlib.sha256(migrations.fingerprint().encode())
    for app in migrations.APPS:
        for file in sorted((CHECKOUT / app).rglob("*.sql")):
            if DEFINES.search(text := file.read_bytes()):  # a query changes nothing in an empty database
                digest.update(file.name.encode() + text)
    return f"gpubroker_template_{digest.hexdigest()[:16]}"


def start() -> None:
    """Start the server unless it runs, and keep it running until this session ends."""
    if given_server():
        return
    with exclusive():
        found = running() or _spawn()
        pid = int(session.name().partition("_")[0])
        said = {"started": process_start(pid), "folder": str(session.folder())}
        (folder() / "sessions" / session.name()).write_text(json.dumps(said))
    while not cluster().responds():  # also one that answered already, on a machine that stood still
        if not found.runs:
            raise RuntimeError(log().read_text())
        time.sleep(0.02)


def leave() -> None:
    """End this session's use of the server."""
    if not given_server():
        (folder() / "sessions" / session.name()).unlink(missing_ok=True)


def log() -> Path:
    """Return where the server process writes; it outlives the folder."""
    return folder().with_suffix(".log")


def _spawn() -> RunningServer:
    """Start the process that serves; it belongs to no session."""
    place = folder()
    shutil.rmtree(place, ignore_errors=True)  # of a server that was killed
    (place / "sessions").mkdir(parents=True)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TEST_SESSION", "PYTEST_"))}
    pid = os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "tests.serve_postgres"],
        env | {"PYTHONPATH": str(CHECKOUT)},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log()), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    found = RunningServer(pid, process_start(pid))
    (place / "server.json").write_text(json.dumps(asdict(found)))
    return found
