"""A cluster whose clock can jump.

A control plane's clock cannot be put forward, ours can. What passes between the two is translated: every moment that
the cluster names is told as so much later, every moment that we name as so much earlier. It then is to us like one
that stood still for those hours: its nodes are heard from now, what ran before runs now, what ends ends now.
"""

import re
import time
from bisect import bisect_right
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

import urllib3

from tests.cluster.proxy import Fault, Proxy
from tests.controlplane.plane import ControlPlane

# Until when a lease is paid we write and read ourselves, and nobody else.
MOMENT = re.compile(rb'(?<!paid-until":)"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)((?:\.\d+)?Z)"')
WRITTEN = "%Y-%m-%dT%H:%M:%S"
LASTS_S, NAP_S = 5.0, 0.05
BYTES, LONG_AGO = 2**16, datetime.min.replace(tzinfo=UTC)


@dataclass
class Jumps:
    """Jumps of the product's clock ahead of the cluster's clock."""

    ahead: timedelta = timedelta()
    _since: list[datetime] = field(default_factory=list)  # our moments before each jump
    _jumped: list[tuple[datetime, timedelta]] = field(default_factory=list)  # when it really was, and how far since

    @property
    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def jump(self, length: timedelta) -> None:
        self._since.append(self.now)
        self._jumped.append((datetime.now(UTC), self.ahead + length))
        self.ahead += length

    def real(self, ours: datetime) -> datetime:
        """Return the real time of a time on the product's clock."""
        last = bisect_right(self._since, ours) - 1
        if last < 0:
            return ours
        moment, ahead = self._jumped[last]
        return max(ours - ahead, moment)

    def latest(self, real: datetime) -> datetime:
        """Return the last jump before a time."""
        return max((moment for moment, _ in self._jumped if moment <= real), default=LONG_AGO)


def translated(text: bytes, by: timedelta) -> bytes:
    """Shift every timestamp in a JSON document."""
    if not by:
        return text

    def moved(found: re.Match[bytes]) -> bytes:
        moment = datetime.strptime(found[1].decode(), WRITTEN).replace(tzinfo=UTC) + by
        return b'"' + moment.strftime(WRITTEN).encode() + found[2] + b'"'

    return MOMENT.sub(moved, text)


class Later(Proxy):
    """A proxy to the cluster that can be cut."""

    playing = ""  # what a fault that is planned now belongs to

    def __init__(self, plane: ControlPlane, jumps: Jumps) -> None:
        super().__init__(plane)
        self.jumps, self.is_cut = jumps, False
        self.silent_until = 0.0  # so long watches say nothing, and stay open
        self.met = Counter[str]()  # how often somebody ran into one
        self._planned: deque[tuple[float, Fault]] = deque()

    def fails(self, what: str, status: int = 0, **more: Any) -> Fault:
        """Plan a fault that expires after a few seconds.

        Else all that was planned while a server wanted to be left alone would come at once after it.
        """
        moment, fault = time.monotonic(), super().fails(what, status, name=self.playing, **more)
        self._planned.append((moment, fault))
        while self._planned[0][0] < moment - LASTS_S:
            self._planned.popleft()[1].times = 0
        return fault

    def _choose(self, wanted: str) -> Fault | None:
        if fault := super()._choose(wanted):
            self.met[fault.name] += 1
        return fault

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        if self.is_cut:
            handler.close_connection = True
        else:
            super()._serve(handler)

    def _ask(self, handler: BaseHTTPRequestHandler, body: bytes) -> urllib3.BaseHTTPResponse:
        return super()._ask(handler, translated(body, -self.jumps.ahead))

    def _answer(self, handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
        if self.is_cut:  # it was asked before, and answers into the void
            handler.close_connection = True
        else:
            super()._answer(handler, status, translated(body, self.jumps.ahead), headers)

    def _pass_on(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        if "watch=true" not in handler.path:
            super()._pass_on(handler, body)
            return
        try:
            self._stream(handler, self._ask(handler, body))
        except (OSError, urllib3.exceptions.HTTPError):
            handler.close_connection = True

    def _stream(self, handler: Any, real: urllib3.BaseHTTPResponse) -> None:
        """Forward a watch line by line, so that timestamps stay whole."""
        handler.send_response(real.status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        rest = b""
        for piece in real.stream(BYTES):
            *lines, rest = (rest + piece).split(b"\n")
            while time.monotonic() < self.silent_until and not self.is_cut:
                time.sleep(NAP_S)
            if self.is_cut:
                handler.close_connection = True
                return
            whole = translated(b"".join(line + b"\n" for line in lines), self.jumps.ahead)
            if whole:
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(whole), whole))
                handler.wfile.flush()
        handler.wfile.write(b"0\r\n\r\n")
