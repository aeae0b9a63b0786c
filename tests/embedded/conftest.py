"""Fixtures: a data folder, a port, and stand-ins that are stopped afterwards."""

import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import session


def parents() -> dict[int, int]:
    """Return the parent of every process that is not a zombie."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            found[int(status.parent.name)] = int(fields[1])
    return found


@dataclass
class Start:
    """A stand-in in its own process."""

    popen: subprocess.Popen[str]

    def family(self) -> set[int]:
        """Return the pids of its descendants."""
        known, family = parents(), {self.popen.pid}
        while more := {pid for pid, parent in known.items() if parent in family} - family:
            family |= more
        return family - {self.popen.pid}

    def until_ready(self) -> None:
        assert self.popen.stdout
        assert self.popen.stderr
        for line in self.popen.stdout:
            if line == "ready\n":
                return
        pytest.fail(self.popen.stderr.read())


@pytest.fixture
def data() -> Iterator[Path]:
    """Return an empty data folder."""
    folder = Path(tempfile.mkdtemp(prefix="gpubroker-data-", dir=session.folder().parent))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def port() -> int:
    """Return a port that is free with the next one, below the ephemeral range."""
    for candidate in range(20_000 + session.worker_number() * 500, 32_000, 2):
        with socket.socket() as one, socket.socket() as two:
            try:
                one.bind(("127.0.0.1", candidate))
                two.bind(("127.0.0.1", candidate + 1))
            except OSError:
                continue
            return candidate
    pytest.fail("no free pair of ports")


@pytest.fixture
def start(data: Path, port: int) -> Iterator[Callable[..., Start]]:
    """Return a function that starts stand-ins on the databases of the data folder."""
    begun: list[Start] = []

    def begin(*kinds: str) -> Start:
        popen = subprocess.Popen(
            [sys.executable, "-m", "tests.embedded.standin", str(data), str(port), *kinds],
            cwd=session.CHECKOUT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(Start(popen))
        return begun[-1]

    yield begin
    for one in begun:
        if one.popen.poll() is None:
            one.popen.terminate()
        one.popen.communicate(timeout=60)
