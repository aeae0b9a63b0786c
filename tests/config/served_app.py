"""A small WSGI application that a test serves with the product's web worker."""

import os
import time
from collections.abc import Callable, Iterable

# As config/wsgi.py sets it.
UPSTREAM = "TEST_EVENTS_UPSTREAM"
Start = Callable[[str, list[tuple[str, str]]], object]
LARGE = 30_000_000


def application(environ: dict[str, object], start: Start) -> Iterable[bytes]:
    """Answer with the length of the body, the scheme, or many bytes."""
    path = environ["PATH_INFO"]
    length = int(str(environ.get("CONTENT_LENGTH") or 0))
    body = environ["wsgi.input"].read(length)  # type: ignore[attr-defined]
    if path == "/slow":
        time.sleep(1.5)
    text = b"x" * LARGE if path == "/large" else f"{environ['wsgi.url_scheme']} {len(body)}".encode()
    start("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(text)))])
    return [text]


application.events_upstream = os.environ.get(UPSTREAM, "")  # type: ignore[attr-defined]
