"""OPTIONS at the addresses of live streams, as browsers ask before they send a token."""

import asyncio
from typing import Any

import pytest
from django.conf import settings

from web.http.event_stream import EventStreamApp


def ask(path: str, headers: dict[str, str]) -> tuple[int, dict[str, str]]:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    scope = {
        "type": "http",
        "method": "OPTIONS",
        "path": path,
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    asyncio.run(EventStreamApp()(scope, receive, send))
    return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}


@pytest.mark.parametrize("path", ["/api/v1/events/stream", "/api/v1/events/logs/lse_x"])
def test_the_methods_of_a_stream_are_named_to_anybody(path: str) -> None:
    status, headers = ask(path, {})
    assert (status, headers["allow"]) == (204, "GET, OPTIONS")
    assert "access-control-allow-origin" not in headers


def test_the_portals_pages_may_send_a_token() -> None:
    _, headers = ask("/api/v1/events", {"Origin": settings.PUBLIC_URL})
    assert headers["access-control-allow-origin"] == settings.PUBLIC_URL
    assert "Authorization" in headers["access-control-allow-headers"]


def test_other_origins_may_not() -> None:
    _, headers = ask("/api/v1/events", {"Origin": "https://elsewhere.example"})
    assert not [name for name in headers if name.startswith("access-control")]


def test_the_former_address_of_the_stream_still_answers() -> None:
    assert ask("/api/v1/events", {})[0] == 204
