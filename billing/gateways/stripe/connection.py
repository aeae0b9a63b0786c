"""Stripe client: a pinned API version, always a timeout, never a silent retry."""

from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any

from django.conf import settings
from stripe import APIConnectionError, HTTPClient, StripeClient

from billing.domain.stripe_events import VERSION
from ports import http
from ports.payments import GatewayRejected

CALL_S = 6  # a charge makes at most five calls and must return within half a minute


class StripeTransport(HTTPClient):
    """Transport of Stripe's SDK over our own HTTP client."""

    name = "gpubroker"

    @cached_property
    def _web(self) -> Any:
        return http.client(timeout_s=CALL_S)

    def request(  # type: ignore[override]  # the SDK's own has one more argument, which it never uses
        self, method: str, url: str, headers: Mapping[str, str] | None, post_data: Any = None
    ) -> tuple[bytes, int, Mapping[str, str]]:
        try:
            answer = self._web.request(method, url, headers=headers, content=post_data)
        except http.HttpFailed as failed:
            name = type(failed).__name__  # its text may contain addresses
            raise APIConnectionError(name) from None  # type: ignore[no-untyped-call]
        return answer.content, answer.status_code, answer.headers

    def close(self) -> None:
        self._web.close()


def stripe_client() -> StripeClient:
    """Return the Stripe client; raise GatewayRejected if no key is configured."""
    if not settings.STRIPE_SECRET_KEY:
        raise GatewayRejected("No Stripe key is configured.", code="no_credentials")
    # No retries by the SDK: we retry, with the stored key.
    return StripeClient(settings.STRIPE_SECRET_KEY, stripe_version=VERSION, max_network_retries=0, http_client=_https())


@cache
def _https() -> HTTPClient:
    return StripeTransport()
