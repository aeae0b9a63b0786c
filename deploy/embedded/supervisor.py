"""Supervisor of child processes: starts them, restarts them, and stops them all."""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from deploy.embedded.process import WATCHED_SIGNALS, Process, ProcessSpec, adopt_orphans, wait_for_signal
from deploy.embedded.progress import Progress
from deploy.embedded.startup_error import StartupError

QUICK_EXIT_S = 10.0
MAX_QUICK_EXITS = 5
# Seconds to end, then to end after the last signal: first of the product, then of the servers.
GRACE_S = ((4.0, 1.5), (3.0, 0.5))
DISK_FULL_TEXT = "No space left on device"


class StopRequested(Exception):
    """A signal asked us to stop."""


class Supervisor:
    """Parent of all processes."""

    def __init__(self, logs: Path, progress: Progress | None = None, keep_open: tuple[int, ...] = ()) -> None:
        self.logs, self.keep_open = logs, keep_open
        self.progress = progress or Progress()
        self.say = self.progress.say
        # The processes launched first are the servers that the others need: they stop last.
        self.servers: list[Process] = []
        self.dependents: list[Process] = []
        signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED_SIGNALS)
        adopt_orphans()

    @property
    def processes(self) -> list[Process]:
        return [*self.servers, *self.dependents]

    def pause(self, seconds: float) -> None:
        """Sleep until a child changes state; raise StopRequested when a signal asks us to end."""
        self.progress.tick()
        received = wait_for_signal(seconds)
        if received is not None and received != signal.SIGCHLD:
            raise StopRequested(signal.Signals(received).name)

    def launch(self, *specs: ProcessSpec) -> list[Process]:
        """Start processes in parallel."""
        level = self.dependents if self.servers else self.servers
        launched = [Process(spec, self.logs / f"{spec.name}.log", self.keep_open) for spec in specs]
        for process in launched:
            process.start()
            level.append(process)
        return launched

    def start(self, *specs: ProcessSpec) -> None:
        """Start processes in parallel and return when each is ready."""
        self.wait_until_ready(self.launch(*specs))

    def wait_until_ready(self, processes: Sequence[Process]) -> None:
        """Wait until each is ready; raise StartupError if one exits or takes too long."""
        began, waiting = time.monotonic(), list(processes)
        while waiting:
            for process in list(waiting):
                if not process.is_alive:
                    raise self._startup_error(process, "ended while starting")
                if process.spec.ready(process):
                    waiting.remove(process)
                elif time.monotonic() - began > process.spec.start_timeout_s:
                    raise self._startup_error(process, f"did not answer in {process.spec.start_timeout_s:.0f} s")
            if waiting:
                self.pause(0.05)

    def run(self, spec: ProcessSpec) -> Process:
        """Run a process to its end; raise StartupError if it fails."""
        process = self.finish(spec)
        if process.popen.returncode != 0:
            raise self._startup_error(process, "failed")
        return process

    def finish(self, spec: ProcessSpec) -> Process:
        """Run a process to its end, whatever its exit status."""
        (process,) = self.launch(spec)
        while process.is_alive:
            self.pause(0.5)
        self.dependents.remove(process)
        return process

    def _startup_error(self, process: Process, problem: str) -> StartupError:
        log_end = process.last_words()
        hint = "\nThe disk is full. Free some disk space, then start again." if DISK_FULL_TEXT in log_end else ""
        return StartupError(f"{process.spec.name} {problem}. The end of {process.log}:\n{log_end}{hint}")

    def watch(self) -> None:
        """Restart processes that exit, until asked to stop or one exits too often."""
        while True:
            self._reap_orphans()
            waiting = [process for process in self.processes if self._restart_if_dead(process)]
            self.pause(0.2 if waiting else 60)

    def _restart_if_dead(self, process: Process) -> bool:
        """Restart a dead process once its backoff is over; return whether it still waits."""
        if process.is_alive:
            return False
        now = time.monotonic()
        if not process.dead_since:
            process.dead_since = now
            process.sweep_group()
            self._kill_orphans()
            # SIGKILL from outside, as when memory runs out, does not count as a crash.
            killed = process.popen.returncode == -signal.SIGKILL
            quick = now - process.started < QUICK_EXIT_S and not killed
            process.quick_deaths = process.quick_deaths + 1 if quick else 1
            self.say(f"{process.spec.name} ended unexpectedly ({_exit_description(process.popen.returncode)}).")
        if process.quick_deaths >= MAX_QUICK_EXITS:
            raise self._startup_error(process, f"died {MAX_QUICK_EXITS} times in a row, so everything stops")
        if now - process.dead_since < 0.25 * 2**process.quick_deaths:
            return True
        self.say(f"{process.spec.name} starts again.")
        process.start()
        return False

    def _kill_orphans(self) -> None:
        """Kill orphaned grandchildren.

        A busy session of a dead PostgreSQL keeps the next server from starting.
        """
        ours = {process.popen.pid for process in self.processes}
        for child in _child_pids():
            if child not in ours:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)

    def _reap_orphans(self) -> None:
        """Reap orphaned grandchildren; our own children are reaped by Popen."""
        ours = {process.popen.pid for process in self.processes}
        with suppress(ChildProcessError):
            while dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if dead.si_pid in ours:
                    return
                os.waitpid(dead.si_pid, 0)

    def stop(self) -> None:
        """Stop everything in reverse order, and leave no process behind."""
        for level, (grace, last_call) in zip((self.dependents, self.servers), GRACE_S, strict=True):
            for process in reversed(level):
                process.send(process.spec.stop_signal)
            if not self._wait_until_ended(level, grace):
                for process in level:
                    process.send(process.spec.orphan_signal)
                self._wait_until_ended(level, last_call)
            for process in level:
                process.sweep_group()
                process.popen.wait()
            level.clear()
        _kill_children()

    def _wait_until_ended(self, level: Sequence[Process], within: float) -> bool:
        end = time.monotonic() + within
        while any(process.is_alive for process in level) and time.monotonic() < end:
            signal.sigtimedwait({signal.SIGCHLD}, 0.05)
        return not any(process.is_alive for process in level)


def _exit_description(returncode: int) -> str:
    return f"signal {signal.Signals(-returncode).name}" if returncode < 0 else f"exit status {returncode}"


def _child_pids() -> list[int]:
    """Return the process ids of our children; none if the kernel has no such list."""
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:
        return []


def _kill_children() -> None:
    """Kill remaining children: grandchildren that left their process group, such as database sessions."""
    for _ in range(20):
        children = _child_pids()
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, 0):
                continue
        if not children:
            return
