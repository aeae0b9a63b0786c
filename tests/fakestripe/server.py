"""A fake of Stripe in this process, as the SDK's HTTP client.

It keeps what it was told, remembers idempotency keys for a day, refuses what Stripe refuses, and falls ill on request.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import stripe
from stripe import APIConnectionError, HTTPClient

from tests.fakestripe import shapes
from tests.fakestripe.things import ROUTES, Refusal, Things

VERSION = "2026-10-28.endive"
KEY = "sk_test_" + "fake"
REMEMBERED = timedelta(hours=24)
ACCOUNT = "acct_ours"
Answer = tuple[bytes, int, dict[str, str]]


@dataclass
class Call:
    """One request as it came in."""

    method: str
    path: str
    params: dict[str, Any]
    idem: str

    @property
    def word(self) -> str:
        """Return the action, such as `pay` or `invoices`."""
        return self.path.rstrip("/").rpartition("/")[2] if self.method == "post" else self.method


# An ill happens before anything is done, or after: 429, lock_timeout, unreachable, unauthorized, 500 / lost, 500_done.
BEFORE = {
    "429": (429, {"type": "invalid_request_error", "code": "rate_limit", "message": "Too many requests."}),
    "lock_timeout": (
        429,
        {"type": "invalid_request_error", "code": "lock_timeout", "message": "The object is locked."},
    ),
    "unauthorized": (401, {"type": "invalid_request_error", "message": f"Invalid API Key provided: {KEY}"}),
    "in_use": (
        409,
        {
            "type": "idempotency_error",
            "code": "idempotency_key_in_use",
            "message": "Another request has the key.",
        },
    ),
}
BROKEN = {"type": "api_error", "message": "Something went wrong on Stripe's end."}


@dataclass(eq=False)
class FakeStripe(HTTPClient):
    """HTTP client of the SDK that answers as Stripe does."""

    now: datetime = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
    ill: Callable[[Call], str] = lambda _: ""
    down: bool = False
    total_off: int = 0  # by so much Stripe adds up otherwise than we do
    things: Things = field(default_factory=Things)
    calls: Counter[str] = field(default_factory=Counter)
    _memory: dict[str, tuple[datetime, str, Answer]] = field(default_factory=dict)

    name = "fake"

    def __post_init__(self) -> None:
        super().__init__()
        self.things.clock = lambda: int(self.now.timestamp())

    def request(  # type: ignore[override]
        self, method: str, url: str, headers: Mapping[str, str] | None, post_data: Any = None
    ) -> Answer:
        headers, parts = headers or {}, urlsplit(url)
        assert parts.netloc == "api.stripe.com"
        body = post_data or ""
        text = body if isinstance(body, str) else body.decode()
        call = Call(method, parts.path, decoded(text or parts.query), headers.get("Idempotency-Key", ""))
        self.calls[call.word] += 1
        if self.down:
            raise APIConnectionError("the network is unreachable")
        if headers["Authorization"] != f"Bearer {KEY}":
            return _error(*BEFORE["unauthorized"])
        assert headers["Stripe-Version"] == VERSION, headers["Stripe-Version"]
        return self._answer(call, f"{method} {parts.path} {text}")

    def _answer(self, call: Call, text: str) -> Answer:
        ill = self.ill(call)
        if ill == "unreachable":
            raise APIConnectionError("connection refused")
        if ill in BEFORE:
            return _error(*BEFORE[ill])
        if call.method == "get":
            answer = self._do(call)
        else:
            assert call.idem, f"{call.method} {call.path} has no key of ours"
            answer = self._once(call, text, ill)
        if ill == "lost":
            raise APIConnectionError("the answer was lost")
        return answer

    def _once(self, call: Call, text: str, ill: str) -> Answer:
        """Execute it, or repeat the answer to the same key."""
        known = self._memory.get(call.idem)
        if known and self.now - known[0] < REMEMBERED:
            if known[1] != text:
                words = "Keys for idempotent requests can only be used with the same parameters."
                return _error(400, {"type": "idempotency_error", "message": words})
            return known[2][0], known[2][1], {**known[2][2], "idempotent-replayed": "true"}
        if ill == "500":
            answer = _error(500, BROKEN)
        elif ill == "500_done":
            self._do(call)
            answer = _error(500, BROKEN)
        else:
            answer = self._do(call)
        self._memory[call.idem] = (self.now, text, answer)
        return answer

    def _do(self, call: Call) -> Answer:
        for method, pattern, shape, act in ROUTES:
            found = re.fullmatch(pattern, call.path)
            if method == call.method and found:
                if shape:
                    shapes.check(shape, call.params)
                try:
                    self.things.total_off = self.total_off
                    return _as_answer(act(self.things, *found.groups(), call.params))
                except Refusal as refusal:
                    return _error(refusal.status, refusal.error)
        raise AssertionError(f"the fake has no {call.method} {call.path}")

    def close(self) -> None:
        """Do nothing: no connection is open."""


def decoded(text: str) -> dict[str, Any]:
    """Decode a form such as `lines[0][amount]=5`."""
    values: dict[str, Any] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        first, *rest = re.findall(r"[^\[\]]+", name)
        here, key = values, first
        for part in rest:
            here = here.setdefault(key, {})
            key = part
        here[key] = value
    return {key: _lists(value) for key, value in values.items()}


def _lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value and all(key.isdigit() for key in value):
        return [_lists(value[key]) for key in sorted(value, key=int)]
    return {key: _lists(each) for key, each in value.items()}


def _as_answer(thing: Any) -> Answer:
    return json.dumps(thing).encode(), 200, {"request-id": "req_fake"}


def _error(status: int, error: dict[str, Any]) -> Answer:
    return json.dumps({"error": error}).encode(), status, {"request-id": "req_fake"}


def signed(payload: str, secret: str, at: datetime) -> str:
    """Return the header that Stripe signs a body with."""
    made = stripe.WebhookSignature.generate_signature_header(payload, secret, int(at.timestamp()))
    return str(made)
