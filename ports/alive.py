"""A sign of life for who cannot ask: a file that a process touches as it goes on, and a probe finds young or old.

Who waits for a database that is away goes on as well: a new start would bring it back no sooner.
"""

from contextlib import suppress
from pathlib import Path

from django.conf import settings

from ports import clock

EVERY_S = 5.0


class Sign:
    """The file of one process, in its data folder."""

    def __init__(self, name: str) -> None:
        self._file, self._due = Path(settings.DATA_DIR) / f"alive-{name}", 0.0

    def __call__(self) -> None:
        """Say that this process goes on; the file is touched no more often than every few seconds."""
        moment = clock.monotonic()
        if moment >= self._due:
            self._due = moment + EVERY_S
            with suppress(OSError):  # a file that stays old says enough
                self._file.touch()
