"""Show a start step by step, with dots while it lasts and its seconds.

Like environment.py, it must still run under an interpreter that is too old for the product.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

DOT_EVERY_S = 2.0


def write_to_terminal(text: str) -> None:
    """Write to standard output at once, also when it is a pipe."""
    sys.stdout.write(text)
    sys.stdout.flush()


class Progress:
    """Lines of progress; one step at a time."""

    def __init__(self, write: Callable[[str], object] = write_to_terminal) -> None:
        self._write = write
        self._name = ""  # of the step whose line is open
        self._last_dot = 0.0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Print a step's name when it begins, and its seconds when it has succeeded."""
        began = self._last_dot = time.monotonic()
        self._name = name
        self._write(name + " ...")
        try:
            yield
        except BaseException:
            self._end_line()
            raise
        took = f" {time.monotonic() - began:.1f} s\n"
        self._write(took if self._name else f"{name} ...{took}")  # named again if another line came between
        self._name = ""

    def tick(self) -> None:
        """Print a dot if a step has been silent for two seconds."""
        if self._name and time.monotonic() - self._last_dot >= DOT_EVERY_S:
            self._last_dot = time.monotonic()
            self._write(".")

    def say(self, text: str) -> None:
        """Print a line of its own."""
        self._end_line()
        self._write(text + "\n")

    def wait(self, child: subprocess.Popen[str]) -> int:
        """Wait for a child process, with dots, and return its exit status."""
        while child.poll() is None:
            self.tick()
            time.sleep(0.05)
        return int(child.returncode)

    def _end_line(self) -> None:
        if self._name:
            self._write("\n")
        self._name = ""
