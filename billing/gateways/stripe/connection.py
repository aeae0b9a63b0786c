"""Stripe client with a pinned API version."""

from functools import cache

from django.conf import settings
from stripe import HTTPClient, StripeClient

from billing.domain.stripe_events import VERSION
from billing.gateways.stripe.transport import StripeTransport
from ports.payments import GatewayRejected


def stripe_client() -> StripeClient:
    """Return the Stripe client; raise GatewayRejected if no key is configured."""
    if not settings.STRIPE_SECRET_KEY:
        raise GatewayRejected("No Stripe key is configured.", code="no_credentials")
    # No retries by the SDK: we retry, with the stored key.
    return StripeClient(settings.STRIPE_SECRET_KEY, stripe_version=VERSION, max_network_retries=0, http_client=_https())


@cache
def _https() -> HTTPClient:
    return StripeTransport()
