"""The product's only HTTP client: every call has a timeout and follows no redirect."""

import httpx

TIMEOUT_S = 10.0
HttpFailed = httpx.HTTPError  # no response: unreachable, connection lost, or timeout


def client(*, base_url: str = "", timeout_s: float = TIMEOUT_S) -> httpx.Client:
    """Return an HTTP client, to be used as a context manager."""
    return httpx.Client(base_url=base_url, timeout=timeout_s, follow_redirects=False)
