"""The line to Stripe: one client, a version of its API that is pinned, and tests that put another wire in."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from django.conf import settings
from stripe import HTTPClient, StripeClient

from billing.domain.stripe_events import VERSION
from billing.gateways.stripe.wire import Wire
from ports.payments import Rejected

_wire: HTTPClient | None = None


@contextmanager
def over(wire: HTTPClient) -> Iterator[None]:
    """Send everything over this wire until the block ends: tests, which never open a socket."""
    global _wire
    before, _wire = _wire, wire
    try:
        yield
    finally:
        _wire = before


def client() -> StripeClient:
    """Return what speaks to Stripe; raises Rejected where no key is set."""
    if not settings.STRIPE_SECRET_KEY:
        raise Rejected("No key for Stripe is set here.", code="no_credentials")
    # It never repeats by itself: a repetition is ours, with the key that stands in our books.
    return StripeClient(
        settings.STRIPE_SECRET_KEY,
        stripe_version=VERSION,
        max_network_retries=0,
        http_client=_wire or _https(),
    )


@cache
def _https() -> HTTPClient:
    return Wire()
