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
        self.ground: list[Process] = []
        self.above: list[Process] = []
        signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED_SIGNALS)
        adopt_orphans()

    @property
    def processes(self) -> list[Process]:
        return [*self.ground, *self.above]

    def pause(self, seconds: float) -> None:
        """Sleep until a child changes state; raise StopRequested when a signal asks us to end."""
        self.progress.tick()
        received = wait_for_signal(seconds)
        if received is not None and received != signal.SIGCHLD:
            raise StopRequested(signal.Signals(received).name)

    def launch(self, *parts: ProcessSpec) -> list[Process]:
        """Start processes in parallel."""
        level = self.above if self.ground else self.ground
        launched = [Process(part, self.logs / f"{part.name}.log", self.keep_open) for part in parts]
        for process in launched:
            process.start()
            level.append(process)
        return launched

    def start(self, *parts: ProcessSpec) -> None:
        """Start processes in parallel and return when each is ready."""
        self.until_ready(self.launch(*parts))

    def until_ready(self, processes: Sequence[Process]) -> None:
        """Wait until each is ready; raise StartupError if one exits or takes too long."""
        began, waiting = time.monotonic(), list(processes)
        while waiting:
            for process in list(waiting):
                if not process.alive:
                    raise self._complaint(process, "ended while starting")
                if process.part.ready(process):
                    waiting.remove(process)
                elif time.monotonic() - began > process.part.patience_s:
                    raise self._complaint(process, f"did not answer in {process.part.patience_s:.0f} s")
            if waiting:
                self.pause(0.05)

    def run(self, part: ProcessSpec) -> Process:
        """Run a process to its end; raise StartupError if it fails."""
        process = self.finish(part)
        if process.popen.returncode != 0:
            raise self._complaint(process, "failed")
        return process

    def finish(self, part: ProcessSpec) -> Process:
        """Run a process to its end, whatever its exit status."""
        (process,) = self.launch(part)
        while process.alive:
            self.pause(0.5)
        self.above.remove(process)
        return process

    def _complaint(self, process: Process, what: str) -> StartupError:
        words = process.last_words()
        full = "\nThe disk is full. Free some disk space, then start again." if DISK_FULL_TEXT in words else ""
        return StartupError(f"{process.part.name} {what}. The end of {process.log}:\n{words}{full}")

    def watch(self) -> None:
        """Restart processes that exit, until asked to stop or one exits too often."""
        while True:
            self._reap_strangers()
            waiting = [process for process in self.processes if self._revive(process)]
            self.pause(0.2 if waiting else 60)

    def _revive(self, process: Process) -> bool:
        """Restart a dead process once its backoff is over; return whether it still waits."""
        if process.alive:
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
            self.say(f"{process.part.name} ended unexpectedly ({_exit_description(process.popen.returncode)}).")
        if process.quick_deaths >= MAX_QUICK_EXITS:
            raise self._complaint(process, f"died {MAX_QUICK_EXITS} times in a row, so everything stops")
        if now - process.dead_since < 0.25 * 2**process.quick_deaths:
            return True
        self.say(f"{process.part.name} starts again.")
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

    def _reap_strangers(self) -> None:
        """Reap orphaned grandchildren; our own children are reaped by Popen."""
        ours = {process.popen.pid for process in self.processes}
        with suppress(ChildProcessError):
            while dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if dead.si_pid in ours:
                    return
                os.waitpid(dead.si_pid, 0)

    def stop(self) -> None:
        """Stop everything in reverse order, and leave no process behind."""
        for level, (grace, last_call) in zip((self.above, self.ground), GRACE_S, strict=True):
            for process in reversed(level):
                process.send(process.part.stop)
            if not self._gone(level, grace):
                for process in level:
                    process.send(process.part.orphaned)
                self._gone(level, last_call)
            for process in level:
                process.sweep_group()
                process.popen.wait()
            level.clear()
        _kill_children()

    def _gone(self, level: Sequence[Process], within: float) -> bool:
        end = time.monotonic() + within
        while any(process.alive for process in level) and time.monotonic() < end:
            signal.sigtimedwait({signal.SIGCHLD}, 0.05)
        return not any(process.alive for process in level)


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
