"""One child process: started in a group of its own, dead when we are, stopped for certain."""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from deploy.embedded.account import Account

NEWS = {signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
LONGEST_LOG = 20_000_000  # looked at when a process starts; then the log before becomes .log.1
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None, use_errno=True)


class _Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


def next_news(seconds: float) -> int | None:
    """Wait for one of NEWS; None when none came in time, or we ourselves were suspended meanwhile.

    Python's own sigtimedwait hands whatever lay in its memory to whoever was suspended past the end of the wait,
    as by Ctrl-Z.
    """
    wanted = ctypes.create_string_buffer(128)  # a sigset_t
    _libc.sigemptyset(wanted)
    for number in NEWS:
        _libc.sigaddset(wanted, int(number))
    patience = _Timespec(int(seconds), int(seconds % 1 * 1e9))
    came = int(_libc.sigtimedwait(wanted, None, ctypes.byref(patience)))
    return came if came > 0 else None


def adopt_orphans() -> None:
    """Make grandchildren whose parent died ours, so that the end finds them too."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _private(path: Path) -> IO[bytes]:
    """Open a file for writing that only its owner may read."""
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


@dataclass(frozen=True)
class Part:
    """What to run and how it wants to be treated."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    ready: Callable[["Process"], bool] = lambda process: True
    account: Account | None = None
    cwd: Path = Path("/")
    patience_s: float = 40
    stop: signal.Signals = signal.SIGTERM
    # What the kernel sends when we ourselves are killed: the quickest ending that loses nothing.
    orphaned: signal.Signals = signal.SIGTERM
    attached: bool = False  # speaks to this terminal instead of a log
    output: Path | None = None  # where its standard output goes when that is an answer, not a log


@dataclass
class Process:
    """A Part that runs, or ran."""

    part: Part
    log: Path
    popen: subprocess.Popen[bytes] = field(init=False)
    log_start: int = 0
    started: float = 0.0
    dead_since: float = 0.0
    quick_deaths: int = 0

    def start(self) -> None:
        """Start it; its log continues where the last run ended."""
        if self.log.exists() and self.log.stat().st_size > LONGEST_LOG:
            self.log.rename(self.log.with_suffix(".log.1"))
        parent, orphaned = os.getpid(), self.part.orphaned
        self.started, self.dead_since = time.monotonic(), 0.0

        def in_child() -> None:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, NEWS)
            _libc.prctl(PR_SET_PDEATHSIG, int(orphaned), 0, 0, 0)
            if os.getppid() != parent:  # we died between the fork and the line above
                os._exit(1)

        with self.log.open("ab") as log, ExitStack() as open_files:
            self.log_start = log.tell()
            answer = open_files.enter_context(_private(self.part.output)) if self.part.output else log
            self.popen = subprocess.Popen(
                self.part.command,
                stdin=subprocess.DEVNULL,
                stdout=None if self.part.attached else answer,
                stderr=None if self.part.attached else log,
                env=dict(self.part.env),
                cwd=self.part.cwd,
                process_group=0,
                preexec_fn=in_child,  # there are no threads here that a fork could tear
                **(self.part.account.switch() if self.part.account else {}),
            )

    @property
    def alive(self) -> bool:
        return self.popen.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process; gone already is fine."""
        with suppress(ProcessLookupError):
            self.popen.send_signal(number)

    def sweep_group(self) -> None:
        """Kill what is left of its group, once the process itself is gone."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.popen.pid, signal.SIGKILL)

    def said(self) -> str:
        """Return what this run wrote to its log so far."""
        with self.log.open("rb") as log:
            log.seek(self.log_start)
            return log.read().decode(errors="replace")

    def last_words(self, lines: int = 15) -> str:
        """Return the end of its log, for a person to read."""
        return (
            "\n".join(f"    {line}" for line in self.said().splitlines()[-lines:]) or "    (it said nothing)"
        )
