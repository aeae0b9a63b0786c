"""Kill supervised processes, and record the circumstances."""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.running import Running


@dataclass(frozen=True)
class Kill:
    """One kill, by the wall clock, and what it hit."""

    kind: str
    at: float
    in_flight: int
    provisioning: int
    pids: tuple[int, ...]


@dataclass(frozen=True)
class Found:
    """A process of this machine."""

    pid: int
    parent: int
    command: str


def processes() -> dict[int, Found]:
    """Return every process that is not a zombie."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if fields[0] != "Z":
                found[int(folder.name)] = Found(int(folder.name), int(fields[1]), command)
    return found


SIGNS = {
    "worker": "--queues lifecycle",
    "beat": "config.celery beat",
    "relay": "manage.py relay",
    "web": "gunicorn config.wsgi",
    "valkey": "valkey-server",
    "postgres": "/postgres -D",
}


class FaultInjector:
    """Kills the processes of one product."""

    def __init__(self, running: Running, chance: random.Random) -> None:
        self.running, self.chance = running, chance
        self.kinds: dict[str, Callable[[], tuple[int, ...]]] = {
            "worker's main process": lambda: self._shoot(self.mains("worker")),
            "worker's child": lambda: self._shoot([self.chance.choice(self.children("worker"))]),
            "worker with its children": lambda: self._shoot([*self.mains("worker"), *self.children("worker")]),
            "Valkey": lambda: self._shoot(self.mains("valkey")),
            "Valkey and its file": self._valkey_and_its_file,
            "PostgreSQL": lambda: self._shoot(self.mains("postgres")),
            "relay": lambda: self._shoot(self.mains("relay")),
            "beat": lambda: self._shoot(self.mains("beat")),
            "web": lambda: self._shoot([*self.mains("web"), *self.children("web")]),
        }

    def mains(self, part: str) -> list[int]:
        """Return the pid of a part's own process; none while it is down."""
        ours = [p for p in processes().values() if p.parent == self.running.popen.pid]
        return [p.pid for p in ours if SIGNS[part] in p.command]

    def main(self, part: str, *, other_than: int = 0, within_s: float = 20.0) -> int:
        """Wait until a process runs, and return its pid."""
        end = time.monotonic() + within_s
        while not (pids := [pid for pid in self.mains(part) if pid != other_than]):
            if time.monotonic() > end:
                raise AssertionError(f"{part} did not come back in {within_s:.0f} s")
            time.sleep(0.02)
        return pids[0]

    def children(self, part: str) -> list[int]:
        """Return the pids below a part's own process, waiting for the first."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            main = self.main(part)
            if below := [p.pid for p in processes().values() if p.parent == main]:
                return below
            time.sleep(0.05)
        raise AssertionError(f"{part} has no children")

    def kill(self, kind: str, *, in_flight: int = 0, provisioning: int = 0) -> Kill:
        """Kill one kind of thing now."""
        pids = self.kinds[kind]()
        return Kill(kind, time.time(), in_flight, provisioning, pids)

    def _shoot(self, pids: list[int]) -> tuple[int, ...]:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return tuple(pids)

    def _valkey_and_its_file(self) -> tuple[int, ...]:
        """Drop all messages on their way."""
        (main,) = self.mains("valkey") or [self.main("valkey")]
        folder = self.running.data / "valkey" / "appendonlydir"
        # Away first: between the kill and the supervisor's start there is not always time.
        away = folder.with_name(f"gone-{time.time_ns()}")
        with suppress(FileNotFoundError):
            folder.rename(away)
        shot = self._shoot([main])
        shutil.rmtree(away, ignore_errors=True)
        return shot
