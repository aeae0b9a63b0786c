"""Heartbeat files: touched by a process, checked for their age by a probe.

A process that waits for an unavailable database keeps its heartbeat: a restart would not bring the
database back any sooner.
"""

from contextlib import suppress
from pathlib import Path

from django.conf import settings

from ports import clock

INTERVAL_S = 5.0


class HeartbeatFile:
    """Heartbeat file of one process, in its data directory."""

    def __init__(self, name: str) -> None:
        self._file, self._due = Path(settings.DATA_DIR) / f"alive-{name}", 0.0

    def __call__(self) -> None:
        """Touch the heartbeat file, at most once every few seconds."""
        moment = clock.monotonic()
        if moment >= self._due:
            self._due = moment + INTERVAL_S
            with suppress(OSError):  # an old file already signals the problem
                self._file.touch()
