"""Interactive sessions in a simulated box, as a terminal sees them.

A session never waits by itself: it tells its caller how long to wait, and is resumed afterwards.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from broker.domain.simulated_box.box_facts import BoxFacts
from broker.domain.simulated_box.box_output import BoxEvent, BoxOutput
from broker.domain.simulated_box.box_programs import CLEAR_SCREEN
from broker.domain.simulated_box.box_shell import BoxShell, ShellExited
from broker.domain.simulated_box.box_state import BoxState
from broker.domain.simulated_box.line_editor import KeyReader, LineEditor, LineEvent, LineEventKind

MAX_TYPED_AHEAD = 4096  # keys typed while a command runs
WRAP_BACKWARDS = "\x1b[?45h"  # lets a backspace go to the end of the line above
INTERRUPTED = 130
MAX_WAIT_S = 366 * 86400.0


@dataclass(frozen=True, slots=True)
class SessionOutput:
    """What a session shows, and what it does next."""

    text: str = ""
    wait_s: float | None = None  # resume it after so long; None: it only waits for keys
    exit_code: int | None = None  # it has ended


class BoxSession:
    """One terminal in a simulated box."""

    def __init__(self, facts: BoxFacts, *, now: datetime) -> None:
        self._box = BoxState(facts, now=now, started=now)
        self._box.env["TERM"] = "xterm-256color"
        self._shell = BoxShell(self._box, imitates_programs=False)
        self._keys = KeyReader()
        self._editor = LineEditor(self._box.history)
        self._running: Iterator[BoxEvent] | None = None
        self._wakes_at: datetime | None = None  # of the command; None: it waits for no time
        self._typed_ahead: deque[str] = deque()
        self._exit_code: int | None = None

    def start(self) -> SessionOutput:
        """Return the greeting and the first prompt."""
        return SessionOutput(
            f"{WRAP_BACKWARDS}{self._box.facts.notice}\r\nType help for the commands it knows.\r\n{self._prompt()}"
        )

    def feed(self, data: bytes, *, now: datetime) -> SessionOutput:
        """Take what was typed."""
        self._box.now = now
        shown: list[str] = []
        for key in self._keys.read(data):
            if self._running is not None and key == "\x03":
                self._interrupt(shown)
            elif len(self._typed_ahead) < MAX_TYPED_AHEAD:
                self._typed_ahead.append(key)
        return self._press_keys(shown)

    def resume(self, *, now: datetime) -> SessionOutput:
        """Go on after a wait, if it is over."""
        self._box.now = now
        shown: list[str] = []
        if self._wakes_at is not None and now >= self._wakes_at:
            self._advance(shown)
        return self._press_keys(shown)

    def _press_keys(self, shown: list[str]) -> SessionOutput:
        """Press the keys typed ahead until a command waits or the session ends."""
        while self._typed_ahead and self._running is None and self._exit_code is None:
            text, event = self._editor.press(self._typed_ahead.popleft())
            shown.append(text)
            if event is not None:
                self._handle_event(event, shown)
        wait_s = max((self._wakes_at - self._box.now).total_seconds(), 0.0) if self._wakes_at else None
        return SessionOutput("".join(shown), wait_s, self._exit_code)

    def _handle_event(self, event: LineEvent, shown: list[str]) -> None:
        if event.kind is LineEventKind.LINE:
            self._running = self._shell.run(event.text)
            self._advance(shown)
        elif event.kind is LineEventKind.END_OF_INPUT:
            shown.append("exit\r\n")
            self._exit_code = self._box.status
        elif event.kind is LineEventKind.CLEAR:
            shown.append(CLEAR_SCREEN + self._prompt() + self._editor.redraw())
        else:
            self._box.status = INTERRUPTED
            shown.append(self._prompt())

    def _advance(self, shown: list[str]) -> None:
        """Run the command until it waits or ends."""
        self._wakes_at = None
        try:
            for event in self._running or ():
                if isinstance(event, BoxOutput):
                    shown.append(event.text.replace("\n", "\r\n"))
                    continue
                if event.seconds is not None:
                    self._wakes_at = self._box.now + timedelta(seconds=min(event.seconds, MAX_WAIT_S))
                return
            shown.append(self._prompt())
        except ShellExited as exited:
            self._exit_code = exited.status
        self._running = None

    def _interrupt(self, shown: list[str]) -> None:
        self._running = self._wakes_at = None
        self._typed_ahead.clear()
        self._box.status = INTERRUPTED
        shown.append(f"^C\r\n{self._prompt()}")

    def _prompt(self) -> str:
        box = self._box
        home = box.facts.home
        inside = box.directory == home or box.directory.startswith(f"{home}/")
        shown = f"~{box.directory[len(home) :]}" if inside else box.directory
        return f"{box.facts.user}@{box.facts.hostname}:{shown}$ "
