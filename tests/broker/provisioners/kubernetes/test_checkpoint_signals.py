"""Checkpoint commands that send a signal reach the program of a container, also below a shell.

A container is played by a PID namespace, whose process 1 takes no signal without a handler.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.domain.workloads.templates import Workload, build_program
from broker.provisioners.kubernetes.client.pod_exec import in_background

NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
TRAINS = """
import signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: (print("saved", flush=True), sys.exit(0)))
print("ready", flush=True)
time.sleep(30)
"""


@pytest.fixture
def script(tmp_path: Path) -> Iterator[Path]:
    """Return a program that saves its work at a signal."""
    if subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode:
        pytest.skip("PID namespaces are not permitted here")
    path = tmp_path / "train.py"
    path.write_text(TRAINS)
    return path


def run_container(command: list[str], output: Path) -> subprocess.Popen[bytes]:
    """Start a command as process 1 and wait until its program is ready."""
    with output.open("wb") as stream:
        container = subprocess.Popen([*NAMESPACE, *command], stdout=stream, stderr=subprocess.STDOUT)
    wait_for(output, "ready")
    return container


def wait_for(output: Path, word: str) -> None:
    for _ in range(100):
        if word in output.read_text():
            return
        time.sleep(0.1)
    pytest.fail(f"{word} is missing in {output.read_text()!r}")


def run_inside(container: subprocess.Popen[bytes], command: list[str]) -> None:
    children = Path(f"/proc/{container.pid}/task/{container.pid}/children").read_text().split()
    subprocess.run(["nsenter", "--target", children[0], "--pid", "--mount", *command], check=True, timeout=10)


@pytest.mark.parametrize(
    "line",
    [
        "{python} {script}",
        "cd / && {python} {script}",
        "set -e; {python} {script}; echo done",
        "{python} {script} | cat",
        "sh -c '{python} {script}; true'; true",
    ],
)
def test_a_signal_reaches_the_program_of_a_batch_command(line: str, script: Path, tmp_path: Path) -> None:
    program = build_program(Workload("batch", command=line.format(python=sys.executable, script=script)))
    output = tmp_path / "output"
    container = run_container(list(program.command), output)
    try:
        run_inside(container, in_background("kill -USR1 $GPUBROKER_PROGRAM_PID"))
        wait_for(output, "saved")
        assert container.wait(10) == 0
    finally:
        container.kill()
        container.wait()


def test_a_signal_reaches_a_program_that_is_process_1(script: Path, tmp_path: Path) -> None:
    output = tmp_path / "output"
    container = run_container([sys.executable, str(script)], output)
    try:
        run_inside(container, in_background("echo to $GPUBROKER_PROGRAM_PID; kill -USR1 1"))
        wait_for(output, "saved")
        assert "to 1" in output.read_text()
    finally:
        container.kill()
        container.wait()
