"""HTTP client that sends each request to the fake Stripe and to stripe-mock."""

import json
import re
import socket
from collections.abc import Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from stripe import HTTPClient

from tests.fakestripe.server import FakeStripe
from tests.fakestripe.things import ROUTES

WAIT_S = 10


class _Line(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, address: Path) -> None:
        super().__init__("localhost", timeout=WAIT_S)
        self.address = address

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(WAIT_S)
        self.sock.connect(str(self.address))


class Beside(HTTPClient):
    """Sends requests to the mock too, and records its refusals."""

    name = "beside"

    def __init__(self, address: Path) -> None:
        super().__init__()
        self.fake, self.address = FakeStripe(), address
        self.requests: set[tuple[str, str]] = set()  # method, path as the tests' Stripe knows it
        self.refused: list[str] = []

    def request(  # type: ignore[override]
        self, method: str, url: str, headers: Mapping[str, str] | None, post_data: Any = None
    ) -> tuple[bytes, int, dict[str, str]]:
        parts = urlsplit(url)
        line = _Line(self.address)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        line.request(method.upper(), target, body=post_data, headers=dict(headers or {}))
        answer = line.getresponse()
        said = answer.read()
        line.close()
        if answer.status >= 400:
            self.refused.append(f"{method} {parts.path}: {json.loads(said)['error']['message']}")
        for known, pattern, _, _ in ROUTES:
            if known == method and re.fullmatch(pattern, parts.path):
                self.requests.add((method, pattern))
        return self.fake.request(method, url, headers, post_data)

    def close(self) -> None:
        """Do nothing: each request has its own connection."""
