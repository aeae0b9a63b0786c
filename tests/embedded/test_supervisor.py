"""Supervisor: stopping, restarting and killing of processes."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest

from deploy.embedded import folders
from deploy.embedded.process import MAX_LOG_BYTES, Process, ProcessSpec
from deploy.embedded.supervisor import GRACE_S
from tests import session
from tests.embedded.conftest import Start, parents

Begin = Callable[..., Start]


def gone_within(seconds: float, pids: set[int]) -> bool:
    end = time.monotonic() + seconds
    while pids & parents().keys():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.deep
def test_sigterm_stops_all_processes_within_ten_seconds(start: Begin) -> None:
    """Its own timeout is nine seconds; the rest depends on the machine."""
    assert sum(map(sum, GRACE_S)) <= 9
    run = start("sleeper", "family", "stubborn")
    run.until_ready()
    family = run.family()
    assert len(family) >= 6
    run.popen.send_signal(signal.SIGTERM)
    assert run.popen.wait(60) == 0
    assert gone_within(0, family)


ENDS = """import sys; from pathlib import Path; from deploy.embedded.process import ProcessSpec, Process
from deploy.embedded.supervisor import Supervisor
one, send = Supervisor(Path(sys.argv[1])), Process.send
LINGERS = "trap 'sleep 0.3; exit 0' TERM; echo up; while :; do sleep 0.05; done"
for name in ("ground", "early", "late"):
    one.start(ProcessSpec(name, ["/bin/sh", "-c", LINGERS], {}, ready=lambda process: "up" in process.read_log()))
above = [*one.dependents]
def told(process, number):
    print(process.spec.name, process not in above and any(each.is_alive for each in above))
    send(process, number)
Process.send = told
one.stop()"""


def test_the_supervisor_stops_processes_in_reverse_start_order(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDS, str(tmp_path)], cwd=session.CHECKOUT, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == ["late False", "early False", "ground False"], done.stderr


def test_a_configured_database_url_replaces_the_embedded_postgresql(
    start: Begin, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://boss:word@db.example/postgres")
    run = start("sleeper")
    run.until_ready()
    assert child(run, "valkey-server")
    assert child(run, "/postgres\0-D") is None
    assert not (data / "postgres").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")
@pytest.mark.deep
def test_servers_started_by_root_run_without_root_rights(start: Begin) -> None:
    run = start("sleeper")
    run.until_ready()
    for name in ("valkey-server", "/postgres\0-D"):
        status = Path(f"/proc/{child(run, name)}/status").read_text()
        for what in ("Uid", "Gid", "Groups"):
            assert "0" not in re.findall(rf"^{what}:(.*)$", status, re.MULTILINE)[0].split(), (name, what)


PAUSES = """from pathlib import Path; from deploy.embedded.supervisor import Supervisor
import time; one = Supervisor(Path()); print("pauses", flush=True)
began = time.monotonic()
while time.monotonic() - began < 3: one.pause(0.3)
print("went on")"""


@pytest.mark.deep
def test_a_suspended_process_continues_its_pause_after_resuming() -> None:
    command = [sys.executable, "-c", PAUSES]
    with subprocess.Popen(command, cwd=session.CHECKOUT, stdout=subprocess.PIPE, text=True) as pausing:
        assert pausing.stdout
        assert pausing.stdout.readline() == "pauses\n"
        for _ in range(3):
            pausing.send_signal(signal.SIGSTOP)
            time.sleep(0.5)
            pausing.send_signal(signal.SIGCONT)
            time.sleep(0.1)
        assert pausing.stdout.read() == "went on\n"
    assert pausing.returncode == 0


@pytest.mark.deep
def test_ctrl_c_stops_all_processes(start: Begin) -> None:
    run = start("sleeper")
    run.until_ready()
    family = run.family()
    run.popen.send_signal(signal.SIGINT)
    out, _ = run.popen.communicate(timeout=200)
    assert "stopped" in out
    assert gone_within(0, family)


@pytest.mark.deep
def test_killing_the_supervisor_outright_leaves_no_process(start: Begin) -> None:
    run = start("sleeper")
    run.until_ready()
    family = run.family()
    run.popen.kill()
    assert gone_within(30, family)


@pytest.mark.deep
def test_the_database_starts_again_after_the_supervisor_was_killed(start: Begin, data: Path) -> None:
    first = start("sleeper")
    first.until_ready()
    first.popen.kill()
    assert gone_within(30, first.family())
    first.popen.wait()
    again = start("sleeper")
    again.until_ready()
    assert "PANIC" not in (data / "logs/postgres.log").read_text()


def child(run: Start, name: str) -> int | None:
    for pid in run.family():
        with suppress(OSError):
            if name.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
    return None


@pytest.mark.deep
def test_a_database_that_dies_is_restarted(start: Begin, data: Path) -> None:
    run = start("sleeper")
    run.until_ready()
    before = child(run, "valkey-server")
    assert before
    os.kill(before, signal.SIGKILL)
    back_within(30, run, "valkey-server", other_than=before)


def back_within(seconds: float, run: Start, name: str, *, other_than: int | None) -> int:
    """Wait for a new process of that name."""
    end = time.monotonic() + seconds
    while (after := child(run, name)) in (None, other_than):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert after
    return after


@pytest.mark.deep
def test_a_repeatedly_killed_process_is_restarted_every_time(start: Begin) -> None:
    run = start("sleeper")
    run.until_ready()
    seen: int | None = None
    for _ in range(6):
        seen = back_within(30, run, "time.sleep(600)", other_than=seen)
        os.kill(seen, signal.SIGKILL)
    back_within(30, run, "time.sleep(600)", other_than=seen)
    assert run.popen.poll() is None


@pytest.mark.deep
def test_a_killed_database_restarts_although_one_of_its_sessions_was_busy(start: Begin, data: Path) -> None:
    run = start("sleeper")
    run.until_ready()
    password = (data / "administrator").read_text().strip()
    address = f"postgresql://gpubroker_admin:{password}@/postgres?host={folders.socket_directory(data)}"
    with closing(psycopg.connect(address, autocommit=True)) as busy:
        busy.pgconn.send_query(b"SELECT count(*) FROM generate_series(1, 1000000000)")
        before = child(run, "/postgres\0-D")
        assert before
        os.kill(before, signal.SIGKILL)
        back_within(30, run, "/postgres\0-D", other_than=before)
        end = time.monotonic() + 30
        while True:
            try:
                with closing(psycopg.connect(address)) as again:
                    assert again.execute("SELECT 1").fetchone() == (1,)
                break
            except psycopg.OperationalError:
                assert time.monotonic() < end
                time.sleep(0.05)
    assert "pre-existing shared memory" not in (data / "logs/postgres.log").read_text()


@pytest.mark.deep
def test_a_repeatedly_failing_process_stops_all_and_shows_its_last_output(start: Begin) -> None:
    run = start("dying")
    out, errors = run.popen.communicate(timeout=200)
    assert run.popen.returncode == 1
    assert out.count("dying starts again") == 4
    assert "died 5 times in a row" in errors
    assert "I cannot go on" in errors


@pytest.mark.deep
def test_a_disk_that_fills_up_while_running_is_named(start: Begin) -> None:
    run = start("full")
    _, errors = run.popen.communicate(timeout=200)
    assert run.popen.returncode == 1
    assert "The disk is full. Free some disk space" in errors


def test_a_long_log_is_rotated_when_its_process_starts(tmp_path: Path) -> None:
    log = tmp_path / "part.log"
    log.write_bytes(b"old\n" * (MAX_LOG_BYTES // 4 + 1))
    process = Process(ProcessSpec("part", ["/bin/echo", "new"], {}), log)
    process.start()
    process.popen.wait(60)
    assert log.read_text() == "new\n"
    assert (tmp_path / "part.log.1").exists()
