"""Start processes, keep them alive, stop them: knows nothing of what they are."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from deploy.embedded.complaint import Complaint
from deploy.embedded.process import NEWS, Part, Process, adopt_orphans, next_news

QUICK_DEATH_S = 10.0
TOO_MANY_DEATHS = 5
# For what stands above, then for the ground: how long they have to end, and to answer their last call.
GRACE_S = ((4.0, 1.5), (3.0, 0.5))
NO_SPACE = "No space left on device"


class Stopped(Exception):
    """Somebody asked us to stop."""


class Supervisor:
    """The parent of everything that runs."""

    def __init__(self, logs: Path, say: Callable[[str], None] = print) -> None:
        self.logs, self.say = logs, say
        # What is launched first is the ground that the rest stands on: it stops last.
        self.ground: list[Process] = []
        self.above: list[Process] = []
        signal.pthread_sigmask(signal.SIG_BLOCK, NEWS)
        adopt_orphans()

    @property
    def processes(self) -> list[Process]:
        return [*self.ground, *self.above]

    def pause(self, seconds: float) -> None:
        """Sleep until something happens to a child; raise Stopped when we are asked to end."""
        news = next_news(seconds)
        if news is not None and news != signal.SIGCHLD:
            raise Stopped(signal.Signals(news).name)

    def launch(self, *parts: Part) -> list[Process]:
        """Start processes side by side."""
        level = self.above if self.ground else self.ground
        launched = [Process(part, self.logs / f"{part.name}.log") for part in parts]
        for process in launched:
            process.start()
            level.append(process)
        return launched

    def start(self, *parts: Part) -> None:
        """Start processes side by side and return when each is ready."""
        self.until_ready(self.launch(*parts))

    def until_ready(self, processes: Sequence[Process]) -> None:
        """Return when each is ready; raise a Complaint when one dies or takes too long."""
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

    def run(self, part: Part) -> Process:
        """Run a process to its end; raise a Complaint when it fails."""
        process = self.finish(part)
        if process.popen.returncode != 0:
            raise self._complaint(process, "failed")
        return process

    def finish(self, part: Part) -> Process:
        """Run a process to its end, whatever that is."""
        (process,) = self.launch(part)
        while process.alive:
            self.pause(0.5)
        self.above.remove(process)
        return process

    def _complaint(self, process: Process, what: str) -> Complaint:
        words = process.last_words()
        full = "\nThe disk is full. Free some room, then start again." if NO_SPACE in words else ""
        return Complaint(f"{process.part.name} {what}. The end of {process.log}:\n{words}{full}")

    def watch(self) -> None:
        """Restart what dies, until we are asked to stop or it dies too often."""
        while True:
            self._reap_strangers()
            waiting = [process for process in self.processes if self._revive(process)]
            self.pause(0.2 if waiting else 60)

    def _revive(self, process: Process) -> bool:
        """Restart a dead process when its time has come; tell whether it still waits for that."""
        if process.alive:
            return False
        now = time.monotonic()
        if not process.dead_since:
            process.dead_since = now
            process.sweep_group()
            self._kill_orphans()
            # Being killed from outside, as when memory runs out, tells nothing of whether it can live.
            killed = process.popen.returncode == -signal.SIGKILL
            quick = now - process.started < QUICK_DEATH_S and not killed
            process.quick_deaths = process.quick_deaths + 1 if quick else 1
            self.say(f"{process.part.name} ended unexpectedly ({_manner(process.popen.returncode)}).")
        if process.quick_deaths >= TOO_MANY_DEATHS:
            raise self._complaint(process, f"died {TOO_MANY_DEATHS} times in a row, so everything stops")
        if now - process.dead_since < 0.25 * 2**process.quick_deaths:
            return True
        self.say(f"{process.part.name} starts again.")
        process.start()
        return False

    def _kill_orphans(self) -> None:
        """Kill grandchildren that became ours: a busy session of a dead database keeps the next one from starting."""
        ours = {process.popen.pid for process in self.processes}
        for child in _children():
            if child not in ours:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)

    def _reap_strangers(self) -> None:
        """Bury grandchildren that became ours; our own children are for Popen to bury."""
        ours = {process.popen.pid for process in self.processes}
        with suppress(ChildProcessError):
            while dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if dead.si_pid in ours:
                    return
                os.waitpid(dead.si_pid, 0)

    def stop(self) -> None:
        """Stop everything, the last started first, and leave no process behind."""
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


def _manner(returncode: int) -> str:
    return f"signal {signal.Signals(-returncode).name}" if returncode < 0 else f"exit status {returncode}"


def _children() -> list[int]:
    """Return what is ours; nothing under a kernel without that list."""
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:
        return []


def _kill_children() -> None:
    """Kill what is still ours: grandchildren that left their group, like a database's sessions."""
    for _ in range(20):
        children = _children()
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, 0):
                continue
        if not children:
            return
