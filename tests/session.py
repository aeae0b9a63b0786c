"""Name one test session: its folder, its databases, and locks among its workers."""

import fcntl
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.embedded.scratch import fastest_directory

CHECKOUT = Path(__file__).resolve().parents[1]


def folder() -> Path:
    """Return this session's own folder; the workers of a session share one."""
    if "TEST_SESSION" not in os.environ:
        os.environ["TEST_SESSION"] = tempfile.mkdtemp(prefix="gpubroker-test-", dir=fastest_directory())
        # The random part keeps a reused pid from meeting the databases of a session that was killed.
        os.environ["TEST_SESSION_NAME"] = f"{os.getpid()}_{secrets.token_hex(3)}"
    return Path(os.environ["TEST_SESSION"])


def name() -> str:
    """Return this session's name, which begins with the pid of its first process."""
    folder()
    return os.environ["TEST_SESSION_NAME"]


@contextmanager
def lock(what: str) -> Iterator[None]:
    """Let one worker of this session at a time do something."""
    with (folder() / what).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def worker_number() -> int:
    """Return this worker's number, for what must not be chosen twice."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def database_name(suffix: str) -> str:
    """Name a database of this session; two sessions on one server never meet."""
    return f"gpubroker_test_{name()}_{suffix}"
