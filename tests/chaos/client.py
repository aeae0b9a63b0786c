"""A client with one key per intent that records every answer."""

import http.client
import json
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NO_ANSWER = 0
LATER = {NO_ANSWER, 500, 502, 503, 504}  # 500 is a fault of ours, and is counted as one
TIMEOUT_S = 15.0
KEPT_S = 1.0  # the server hangs up on who is silent for two seconds
JSON = "application/json"


@dataclass(frozen=True)
class Answer:
    """One answer, and when it was sent and received."""

    status: int
    body: dict[str, Any]
    sent: float
    at: float
    replayed: bool = False
    retry_after: float = 0.0
    what: str = ""

    @property
    def accepted(self) -> bool:
        return 200 <= self.status < 300

    @property
    def later(self) -> bool:
        return self.status in LATER or self.body.get("code") == "idempotency-in-flight"


@dataclass
class Launch:
    """One intended lease with all answers about it."""

    number: int
    key: str
    body: dict[str, Any]
    heard: list[Answer] = field(default_factory=list)
    released: Answer | None = None  # the first acknowledgement that it ends

    @property
    def leases(self) -> set[str]:
        return {answer.body["id"] for answer in self.heard if answer.accepted}

    @property
    def acknowledged(self) -> bool:
        return bool(self.leases)


class Client:
    """API client for many threads, with one connection per thread."""

    def __init__(self, port: int, token: str) -> None:
        self.port, self.token = port, token
        self.answers: list[Answer] = []
        self.polls: list[Answer] = []  # reads that only check availability
        self.patience_s = 90.0
        self.giving_up = threading.Event()
        self._own = threading.local()
        self._lines: list[http.client.HTTPConnection] = []
        self.started = self.landed = 0  # requests that change something
        self._counting = threading.Lock()

    @property
    def in_flight(self) -> int:
        """Return the number of changing requests in progress."""
        return self.started - self.landed

    def once(self, method: str, path: str, body: Mapping[str, Any] | None = None, *, key: str = "") -> Answer:
        """Send one request and record its answer."""
        headers = self.headers(key)
        changes = method != "GET"
        with self._counting:
            self.started += changes
        sent = time.time()
        try:
            answer = self._exchange(method, f"/api/v1/{path}", json.dumps(body or {}), headers, sent)
        except (OSError, http.client.HTTPException) as failure:
            self._hang_up()
            answer = Answer(NO_ANSWER, {"why": repr(failure)}, sent, time.time(), what=f"{method} {path}")
        finally:
            with self._counting:
                self.landed += changes
        (self.answers if changes else self.polls).append(answer)
        return answer

    def headers(self, key: str = "") -> dict[str, str]:
        """Return headers with the token and the idempotency key."""
        named = {"Authorization": f"Bearer {self.token}", "Content-Type": JSON}
        return named | ({"Idempotency-Key": key} if key else {})

    def poll(self) -> None:
        """Read something five times a second until the end."""
        while not self.giving_up.wait(0.2):
            self.once("GET", "leases?limit=1")

    def _exchange(self, method: str, path: str, body: str, headers: Mapping[str, str], sent: float) -> Answer:
        line = self._line()
        line.request(method, path, body if method != "GET" else None, dict(headers))
        got = line.getresponse()
        text = got.read()
        if got.getheader("Connection", "") == "close":
            self._hang_up()
        found = json.loads(text) if "json" in got.getheader("Content-Type", "") else {"text": text[:500].decode()}
        return Answer(
            got.status,
            found,
            sent,
            time.time(),
            got.getheader("Idempotency-Replayed") == "true",
            float(got.getheader("Retry-After") or 0),
            f"{method} {path}",
        )

    def _line(self) -> http.client.HTTPConnection:
        if time.monotonic() - getattr(self._own, "used", 0.0) > KEPT_S:
            self._hang_up()
        self._own.used = time.monotonic()
        if getattr(self._own, "line", None) is None:
            self._own.line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
            self._lines.append(self._own.line)
        line: http.client.HTTPConnection = self._own.line
        return line

    def _hang_up(self) -> None:
        if getattr(self._own, "line", None) is not None:
            self._own.line.close()
            self._own.line = None

    def close(self) -> None:
        """Close the connections of all threads."""
        self.giving_up.set()
        for line in self._lines:
            line.close()

    def insist(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        key: str = "",
        heard: list[Answer],
    ) -> Answer:
        """Ask until a final answer or a timeout; report every answer."""
        end, pause = time.monotonic() + self.patience_s, 0.1
        while True:
            answer = self.once(method, path, body, key=key)
            heard.append(answer)
            if not answer.later or time.monotonic() > end or self.giving_up.is_set():
                return answer
            time.sleep(max(min(answer.retry_after, 1.0), pause * random.uniform(0.5, 1.0)))
            pause = min(pause * 2, 1.0)

    def launch(self, launch: Launch) -> None:
        """Launch the lease of one intent."""
        self.insist("POST", "leases", launch.body, key=launch.key, heard=launch.heard)

    def release(self, launch: Launch) -> None:
        """Release the lease, and record when the release was accepted."""
        (lease,) = launch.leases
        answer = self.insist("POST", f"leases/{lease}/release", key=f"end-{launch.key}", heard=[])
        if answer.accepted or answer.body.get("code") == "already-over":
            launch.released = launch.released or answer
