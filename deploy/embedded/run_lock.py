"""Lock a data directory until the last process of its run has ended.

Every process of a run inherits the lock. A launcher that was killed leaves children that the kernel has
just told to stop; the next start waits for the lock, so it meets neither their ports nor their database.
"""

import fcntl
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from deploy.embedded import folders
from deploy.embedded.progress import Progress
from deploy.embedded.startup_error import StartupError

FILE = "lock"
STOPPING = "stopping"
REACTION_S = 1.0  # a launcher that gets Ctrl-C marks its lock within this time
KILL_AFTER_S = 10.0  # what a stop may take; after it, children of a dead launcher hang
PATIENCE_S = 20.0


@dataclass(frozen=True)
class RunLock:
    """Lock that this launcher and its processes hold."""

    file: Path
    lock_file: IO[str]

    @property
    def descriptor(self) -> int:
        """File descriptor that each process must inherit."""
        return self.lock_file.fileno()

    def mark_stopping(self) -> None:
        """Tell the next start that it need only wait."""
        with suppress(OSError):  # a full disk must not keep anything from stopping
            self.file.write_text(f"{os.getpid()} {STOPPING}\n")

    def close(self) -> None:
        """Let go; the lock is free once all our processes have ended too."""
        self.lock_file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def lock_data_directory(data: Path, progress: Progress) -> RunLock:
    """Lock the data directory for this run, after a previous run has stopped.

    Raises StartupError that names the process if one keeps running.
    """
    try:
        folders.require_own_directory(data)
        data.mkdir(parents=True, exist_ok=True)
        if not (data / folders.MARKER_FILE).exists():
            (data / folders.MARKER_FILE).write_text(folders.MARKER_TEXT)
        (data / FILE).touch()
        # Read-only: the processes that inherit it cannot change what it says.
        lock = RunLock(data / FILE, (data / FILE).open())
    except OSError as failure:
        raise StartupError(folders.describe_os_error(failure, data)) from failure
    try:
        _wait_for_previous_run(lock, data, progress)
        lock.file.write_text(f"{os.getpid()}\n")
    except BaseException:
        lock.close()
        raise
    return lock


def _wait_for_previous_run(lock: RunLock, data: Path, progress: Progress) -> None:
    """Take the lock, or raise if the previous run does not stop in time."""
    end = time.monotonic() + REACTION_S
    while _is_running(lock.file):
        if _is_taken(lock):
            return
        if time.monotonic() > end:
            raise _already_runs(lock, data)
        time.sleep(0.05)
    if _is_taken(lock):
        return
    with progress.step("Waiting for the previous run to stop"):
        began, killed = time.monotonic(), False
        while not _is_taken(lock):
            if _is_running(lock.file):  # another start took the lock before us
                raise _already_runs(lock, data)
            waited = time.monotonic() - began
            if waited > PATIENCE_S:
                raise _did_not_stop(lock, data)
            if waited > KILL_AFTER_S and not killed and not _is_alive(_launcher(lock.file)[0]):
                killed = True
                for pid in _holders(lock):
                    with suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
            progress.tick()
            time.sleep(0.05)


def _is_taken(lock: RunLock) -> bool:
    """Try to lock; return whether we hold it now."""
    try:
        fcntl.flock(lock.lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _launcher(file: Path) -> tuple[str, bool]:
    """Return the process id of the run's launcher, and whether it said that it stops."""
    words = file.read_text().split()
    return (words[0] if words else "unknown"), STOPPING in words


def _is_running(file: Path) -> bool:
    """Return whether the launcher lives and has not begun to stop."""
    pid, stopping = _launcher(file)
    return _is_alive(pid) and not stopping


def _is_alive(pid: str) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (OSError, IndexError):
        return False


def _already_runs(lock: RunLock, data: Path) -> StartupError:
    return StartupError(
        f"gpubroker already runs from this data folder (process {_launcher(lock.file)[0]}): {data}\n"
        "Use that one, stop it with Ctrl-C, or start another beside it: make run DATA=<folder> PORT=8100"
    )


def _did_not_stop(lock: RunLock, data: Path) -> StartupError:
    pids = _holders(lock)
    return StartupError(
        f"The previous run has not stopped within {PATIENCE_S:.0f} s, {len(pids)} of its processes still use "
        f"{data}: end them with kill -9 {' '.join(map(str, pids)) or '<process>'}, then start again."
    )


def _holders(lock: RunLock) -> list[int]:
    """Return the processes that have the lock file open."""
    return [int(place.name) for place in Path("/proc").glob("[0-9]*") if _holds(place, lock.file)]


def _holds(process: Path, file: Path) -> bool:
    """Return whether a process has inherited the lock, which the kernel notes at the descriptor."""
    with suppress(OSError):
        for link in (process / "fd").iterdir():
            if os.path.realpath(link) == os.path.realpath(file):
                return "FLOCK" in (process / "fdinfo" / link.name).read_text()
    return False
