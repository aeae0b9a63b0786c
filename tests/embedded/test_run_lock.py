"""Data folder lock: concurrent runs are refused, restarts wait for the previous one."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.embedded import run_lock
from deploy.embedded.progress import Progress
from deploy.embedded.run_lock import lock_data_directory
from deploy.embedded.startup_error import StartupError
from tests.embedded.conftest import Start

Begin = Callable[..., Start]
Leave = Callable[[float], subprocess.Popen[bytes]]
WAITING = r"Waiting for the previous run to stop \.\.\.+ \d+\.\d s\n"


@pytest.fixture
def written() -> list[str]:
    return []


@pytest.fixture
def leave(data: Path) -> Iterator[Leave]:
    """Return a function that starts one process of a run with a dead launcher."""
    left: list[subprocess.Popen[bytes]] = []

    def leave_child(seconds: float) -> subprocess.Popen[bytes]:
        with lock_data_directory(data, Progress()) as lock:
            command = [sys.executable, "-c", f"import time; time.sleep({seconds})"]
            left.append(subprocess.Popen(command, pass_fds=[lock.descriptor]))
        gone = subprocess.Popen(["true"])
        gone.wait()
        (data / "lock").write_text(f"{gone.pid}\n")
        return left[-1]

    yield leave_child
    for child in left:
        child.kill()
        child.wait()


def test_a_start_waits_for_the_children_of_a_killed_one(data: Path, written: list[str], leave: Leave) -> None:
    child = leave(1)
    with lock_data_directory(data, Progress(written.append)):
        assert child.wait(0.5) == 0
    assert re.fullmatch(WAITING, "".join(written))


def test_a_start_without_a_previous_run_prints_nothing(data: Path, written: list[str]) -> None:
    for _ in range(2):
        lock_data_directory(data, Progress(written.append)).close()
    assert written == []


def test_a_child_of_a_dead_launcher_that_hangs_is_killed(
    data: Path, written: list[str], leave: Leave, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = leave(600)
    monkeypatch.setattr(run_lock, "KILL_AFTER_S", 0.2)
    lock_data_directory(data, Progress(written.append)).close()
    assert child.wait(1) == -signal.SIGKILL
    assert re.fullmatch(WAITING, "".join(written))


def test_another_waiting_start_is_not_counted_as_a_child(data: Path, leave: Leave) -> None:
    child = leave(600)
    with (data / "lock").open() as other:
        assert run_lock._holders(run_lock.RunLock(data / "lock", other)) == [child.pid]


def test_a_launcher_that_takes_too_long_to_stop_is_reported_and_not_killed(
    data: Path, written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lock, "KILL_AFTER_S", 0.1)
    monkeypatch.setattr(run_lock, "PATIENCE_S", 0.4)
    with lock_data_directory(data, Progress()) as first:
        first.mark_stopping()
        with pytest.raises(StartupError, match=rf"has not stopped within 0 s.*kill -9 {os.getpid()}, then start again"):
            lock_data_directory(data, Progress(written.append))
    assert "".join(written) == "Waiting for the previous run to stop ...\n"


def test_a_second_start_while_the_first_runs_is_refused(data: Path) -> None:
    with (
        lock_data_directory(data, Progress()),
        pytest.raises(StartupError, match=rf"already runs .*\(process {os.getpid()}\)"),
    ):
        lock_data_directory(data, Progress())


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.deep
def test_a_start_right_after_a_stop_succeeds(start: Begin, how: signal.Signals) -> None:
    """The databases flush, and the last process takes longer."""
    run = start("lingering")
    run.until_ready()
    for _ in range(2):
        run.popen.send_signal(how)
        run = start("lingering")
        run.until_ready()
