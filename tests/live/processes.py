"""The product's processes on this machine, with an agent per cluster.

They log in as whoever started us does: `python -m deploy.embedded.scratch python -m …` gives an installation.
"""

import http.client
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from deploy.embedded.folders import CHECKOUT
from deploy.embedded.process import Process, ProcessSpec
from deploy.embedded.product_processes import BACKGROUND_QUEUES, LIFECYCLE_QUEUES
from tests.chaos.running import free_ports

PATIENCE_S = 120.0
MANAGE = [sys.executable, str(CHECKOUT / "manage.py")]
CELERY = [sys.executable, "-m", "celery", "-A", "config.celery"]


class Processes:
    """Web, workers, relay and beat, which end with this process."""

    def __init__(self, *, workers: int = 2) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="gpubroker-live-"))
        self.port, self.workers = free_ports(), workers
        self.running: dict[str, Process] = {}

    def __enter__(self) -> Self:
        signal.signal(signal.SIGTERM, _leave)
        try:
            self._start_all()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def follow(self, cluster: str) -> Process:
        """Start the agent of a cluster."""
        return self.start(f"agent-{cluster}", [*MANAGE, "kube_agent", cluster])

    def start(self, name: str, command: list[str]) -> Process:
        """Start one process, or start it again."""
        env = {**os.environ, "PYTHONPATH": str(CHECKOUT), "PYTHONUNBUFFERED": "1", "CELERY_SKIP_CHECKS": "1"}
        part = ProcessSpec(name, command, env, cwd=CHECKOUT, orphan_signal=signal.SIGKILL)
        process = self.running[name] = Process(part, self.folder / f"{name}.log")
        process.start()
        return process

    def kill(self, name: str) -> None:
        """Kill one as a power cut would, with its children."""
        process = self.running.pop(name)
        process.send(signal.SIGKILL)
        process.popen.wait(10)
        process.sweep_group()

    def stop(self) -> None:
        """Stop all, the last first."""
        for process in reversed(self.running.values()):
            process.send(signal.SIGTERM)
        end = time.monotonic() + 5
        for process in self.running.values():
            while process.is_alive and time.monotonic() < end:
                time.sleep(0.05)
            process.send(signal.SIGKILL)
            process.popen.wait(10)
            process.sweep_group()
        self.running.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start_all(self) -> None:
        web = [
            sys.executable,
            "-m",
            "gunicorn",
            "config.wsgi:application",
            "--bind",
            f"127.0.0.1:{self.port}",
        ]
        web += ["--workers", "2", "--threads", "4", "--worker-class", "config.web_worker.BufferingWorker", "--preload"]
        self.start("web", [*web, "--no-control-socket"])
        worker = [*CELERY, "worker", "--loglevel", "INFO", "--without-gossip", "--without-mingle"]
        self.start("worker", [*worker, "-c", str(self.workers), "--queues", LIFECYCLE_QUEUES, "-n", "worker@live"])
        background = ["nice", "-n", "19", *worker, "-c", "1", "--queues", BACKGROUND_QUEUES]
        self.start("background-worker", [*background, "-n", "background-worker@live"])
        self.start("relay", [*MANAGE, "relay"])
        self.start("log-collector", [*MANAGE, "log_collector"])
        beat = [*CELERY, "beat", "--loglevel", "WARNING", "--pidfile="]
        self.start("beat", [*beat, "-s", str(self.folder / "schedule")])
        self._await("web", self._answers)
        for name in ("worker", "background-worker"):
            self._await(name, lambda name=name: "[tasks]" in self.running[name].read_log())

    def _await(self, name: str, ready: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not ready():
            process = self.running[name]
            if not process.is_alive or time.monotonic() > end:
                raise RuntimeError(f"{name} did not start:\n{process.last_words(40)}")
            time.sleep(0.1)

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/ready")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def _leave(*_: object) -> None:
    """Exit as with Ctrl-C, so that everything is stopped."""
    sys.exit(143)
