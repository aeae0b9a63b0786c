"""Runs of a batch command in a simulated box, computed before they happen."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from broker.domain.simulated_box.box_facts import BoxFacts
from broker.domain.simulated_box.box_output import BoxOutput
from broker.domain.simulated_box.box_shell import BoxShell, ShellExited
from broker.domain.simulated_box.box_state import BoxState

MAX_LINES = 2000
MAX_RUN_S = 366 * 86400.0  # longer than any lease
MAX_LINE_LENGTH = 4000
CUT_MARK = "…"
UNPRINTABLE = {code: "\ufffd" for code in (*range(0x20), 0x7F) if chr(code) not in "\n\t"}


@dataclass(frozen=True, slots=True)
class RunLine:
    """A line that a run prints, with its seconds since the start."""

    offset_s: float
    text: str  # without its newline
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """Everything that a command prints, and how it ends."""

    lines: tuple[RunLine, ...]
    exit_code: int | None  # None: it runs until its lease ends
    duration_s: float | None

    def lines_until(self, elapsed_s: float) -> tuple[RunLine, ...]:
        """Return the lines printed in the first seconds."""
        return tuple(line for line in self.lines if line.offset_s <= elapsed_s)


def plan_run(command_line: str, facts: BoxFacts, *, started: datetime) -> SimulatedRun:
    """Return the run of a command line; the same for the same arguments.

    A program that the box does not know, and no command at all, runs until the lease ends.
    """
    if not command_line.strip():
        return SimulatedRun((), exit_code=None, duration_s=None)
    box = BoxState(facts, now=started, started=started)
    lines, elapsed = _LineCollector(), 0.0
    try:
        for event in BoxShell(box, imitates_programs=True).run(command_line):
            if isinstance(event, BoxOutput):
                lines.add(elapsed, event)
            elif event.seconds is None or elapsed + event.seconds > MAX_RUN_S:
                return SimulatedRun(lines.finish(elapsed), exit_code=None, duration_s=None)
            else:
                elapsed += event.seconds
                box.now = started + timedelta(seconds=elapsed)
    except ShellExited as exited:
        box.status = exited.status
    return SimulatedRun(lines.finish(elapsed), exit_code=box.status, duration_s=elapsed)


class _LineCollector:
    """Joins outputs into lines of bounded number and length; a line counts when it ends."""

    def __init__(self) -> None:
        self._lines: list[RunLine] = []
        self._begun = {False: "", True: ""}  # text of the line that has not ended, by stream

    def add(self, elapsed: float, output: BoxOutput) -> None:
        """Add an output."""
        text = self._begun[output.is_error] + output.text.translate(UNPRINTABLE)
        *ended, self._begun[output.is_error] = text.split("\n")
        for each in ended:
            self._append(RunLine(elapsed, each, output.is_error))

    def finish(self, elapsed: float) -> tuple[RunLine, ...]:
        """Return all lines, with those that no newline ended."""
        for is_error, text in self._begun.items():
            if text:
                self._append(RunLine(elapsed, text, is_error))
        return tuple(self._lines)

    def _append(self, line: RunLine) -> None:
        if len(self._lines) < MAX_LINES:
            text = line.text if len(line.text) <= MAX_LINE_LENGTH else line.text[:MAX_LINE_LENGTH] + CUT_MARK
            self._lines.append(RunLine(line.offset_s, text, line.is_error))
