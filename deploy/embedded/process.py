"""Child process in its own process group, which cannot outlive us."""

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

from deploy.embedded.account import UnprivilegedAccount

WATCHED_SIGNALS = {signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
MAX_LOG_BYTES = 20_000_000  # checked when a process starts; the old log is then renamed to .log.1
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None, use_errno=True)


class _Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


def wait_for_signal(seconds: float) -> int | None:
    """Wait for one of WATCHED_SIGNALS and return it; None if none arrived in time.

    It is also None if we ourselves were suspended meanwhile, as by Ctrl-Z: Python's own sigtimedwait
    then returns uninitialised memory.
    """
    wanted = ctypes.create_string_buffer(128)  # a sigset_t
    _libc.sigemptyset(wanted)
    for number in WATCHED_SIGNALS:
        _libc.sigaddset(wanted, int(number))
    patience = _Timespec(int(seconds), int(seconds % 1 * 1e9))
    came = int(_libc.sigtimedwait(wanted, None, ctypes.byref(patience)))
    return came if came > 0 else None


def adopt_orphans() -> None:
    """Become the parent of orphaned grandchildren, so that the shutdown finds them."""
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _open_private(path: Path) -> IO[bytes]:
    """Open a file for writing that only its owner may read."""
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


@dataclass(frozen=True)
class ProcessSpec:
    """Specification of a process: command, environment, readiness and signals."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    ready: Callable[["Process"], bool] = lambda process: True
    account: UnprivilegedAccount | None = None
    cwd: Path = Path("/")
    start_timeout_s: float = 40
    stop_signal: signal.Signals = signal.SIGTERM
    # Sent by the kernel when we are killed: the fastest shutdown without data loss.
    orphan_signal: signal.Signals = signal.SIGTERM
    uses_terminal: bool = False  # uses this terminal instead of a log
    output: Path | None = None  # file for its standard output if that is a result, not a log


@dataclass
class Process:
    """Process of a ProcessSpec that runs or ran."""

    spec: ProcessSpec
    log: Path
    keep_open: tuple[int, ...] = ()  # descriptors that it inherits
    popen: subprocess.Popen[bytes] = field(init=False)
    log_start: int = 0
    started: float = 0.0
    dead_since: float = 0.0
    quick_deaths: int = 0

    def start(self) -> None:
        """Start it; its log is appended to."""
        if self.log.exists() and self.log.stat().st_size > MAX_LOG_BYTES:
            self.log.rename(self.log.with_suffix(".log.1"))
        parent, orphan_signal = os.getpid(), self.spec.orphan_signal
        self.started, self.dead_since = time.monotonic(), 0.0

        def in_child() -> None:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED_SIGNALS)
            _libc.prctl(PR_SET_PDEATHSIG, int(orphan_signal), 0, 0, 0)
            if os.getppid() != parent:  # we died between the fork and the line above
                os._exit(1)

        with self.log.open("ab") as log, ExitStack() as open_files:
            self.log_start = log.tell()
            answer = open_files.enter_context(_open_private(self.spec.output)) if self.spec.output else log
            self.popen = subprocess.Popen(
                self.spec.command,
                stdin=subprocess.DEVNULL,
                stdout=None if self.spec.uses_terminal else answer,
                stderr=None if self.spec.uses_terminal else log,
                env=dict(self.spec.env),
                cwd=self.spec.cwd,
                process_group=0,
                pass_fds=self.keep_open,
                preexec_fn=in_child,  # safe: there are no threads here
                **(self.spec.account.switch() if self.spec.account else {}),
            )

    @property
    def is_alive(self) -> bool:
        return self.popen.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process, if it still exists."""
        with suppress(ProcessLookupError):
            self.popen.send_signal(number)

    def sweep_group(self) -> None:
        """Kill the rest of its process group, once the process itself has ended."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.popen.pid, signal.SIGKILL)

    def read_log(self) -> str:
        """Return what this run has logged so far."""
        with self.log.open("rb") as log:
            log.seek(self.log_start)
            return log.read().decode(errors="replace")

    def last_words(self, lines: int = 15) -> str:
        """Return the end of its log, for a person to read."""
        return "\n".join(f"    {line}" for line in self.read_log().splitlines()[-lines:]) or "    (no output)"
