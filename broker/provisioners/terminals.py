"""Protocol of a terminal in the box of a lease, simulated or real."""

from dataclasses import dataclass
from typing import Protocol

MAX_COLUMNS, MAX_ROWS = 500, 300


@dataclass(frozen=True, slots=True)
class TerminalSize:
    """Size of a terminal in characters."""

    columns: int = 80
    rows: int = 24

    @classmethod
    def bounded(cls, columns: int, rows: int) -> "TerminalSize":
        """Return a size within the limits."""
        return cls(min(max(columns, 2), MAX_COLUMNS), min(max(rows, 1), MAX_ROWS))


class TerminalUnavailable(Exception):
    """No terminal can be opened there; the text says why."""


class Terminal(Protocol):
    """A shell in a lease; one task calls `read`, another everything else."""

    async def read(self) -> bytes:
        """Wait for output; empty once the shell has ended."""

    async def write(self, keys: bytes) -> None:
        """Send what was typed."""

    async def resize(self, size: TerminalSize) -> None:
        """Tell the shell its new size."""

    async def close(self) -> None:
        """End the shell; may be called twice."""

    @property
    def end_reason(self) -> str:
        """Return how the shell ended, in words; empty while it runs."""
