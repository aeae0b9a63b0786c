"""Replaced HTTP transport of requests to Stripe."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from stripe import HTTPClient

from billing.gateways.stripe import connection


@contextmanager
def use_transport(wire: HTTPClient) -> Iterator[None]:
    """Send all requests over this transport until the block ends."""
    with patch.object(connection, "_https", return_value=wire):
        yield
