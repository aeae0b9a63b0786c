"""The product's only HTTP client: every call has a timeout and follows no redirect."""

import httpx

TIMEOUT_S = 10.0
Failed = httpx.HTTPError  # no answer came: unreachable, broken off, or too late


def client(*, base_url: str = "", timeout_s: float = TIMEOUT_S) -> httpx.Client:
    """Return a client to be used as a context manager."""
    return httpx.Client(base_url=base_url, timeout=timeout_s, follow_redirects=False)
