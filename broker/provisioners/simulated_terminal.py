"""Terminal of a simulated box: a session in memory that waits by the clock."""

import asyncio

from broker.domain.simulated_box.box_facts import BoxFacts
from broker.domain.simulated_box.box_sessions import BoxSession, SessionOutput
from broker.provisioners.terminals import TerminalSize
from ports import clock

MAX_UNREAD = 256 * 1024  # bytes shown and not read yet, after which keys wait


class SimulatedTerminal:
    """Terminal of a simulated box; nothing is executed."""

    def __init__(self, facts: BoxFacts) -> None:
        self._session = BoxSession(facts, now=clock.now())
        self._shown: list[bytes] = []
        self._changed, self._drained = asyncio.Event(), asyncio.Event()
        self._wait_s: float | None = None
        self.end_reason = ""
        self._take(self._session.start())

    async def read(self) -> bytes:
        """Return what the session has shown; a command that waits is resumed meanwhile."""
        while not self._shown:
            if self.end_reason:
                return b""
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), self._wait_s)
            except TimeoutError:
                self._take(self._session.resume(now=clock.now()))
        shown, self._shown = b"".join(self._shown), []
        self._drained.set()
        return shown

    async def write(self, keys: bytes) -> None:
        while sum(map(len, self._shown)) > MAX_UNREAD and not self.end_reason:
            self._drained.clear()
            await self._drained.wait()
        if not self.end_reason:
            self._take(self._session.feed(keys, now=clock.now()))

    async def resize(self, size: TerminalSize) -> None:
        """Do nothing: no program of the box fills the screen."""

    async def close(self) -> None:
        self.end_reason = self.end_reason or "closed"
        self._changed.set()
        self._drained.set()

    def _take(self, output: SessionOutput) -> None:
        if output.text:
            self._shown.append(output.text.encode())
        self._wait_s = output.wait_s
        if output.exit_code is not None:
            self.end_reason = f"the shell exited with code {output.exit_code}"
        self._changed.set()
