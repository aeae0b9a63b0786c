"""Mapping of Stripe's errors: retry, ask a person, or card declined."""

import re

from stripe import (
    APIConnectionError,
    APIError,
    AuthenticationError,
    CardError,
    IdempotencyError,
    PermissionError,
    RateLimitError,
    StripeError,
)

from ports.payments import GatewayRejected, GatewayUnreachable, OutcomeUnknown

BUSY_S = 5
CREDENTIAL_PATTERN = re.compile(r"\b(?:sk|rk|pk|whsec)_\S+")  # Stripe's messages may echo our request
NON_IDENTIFIER = re.compile(r"[^a-z0-9_]+")


def is_unclear(error: StripeError) -> bool:
    """Return whether Stripe failed during a call, so that its effect is unknown."""
    return (error.http_status or 0) >= 500


def to_gateway_error(error: StripeError) -> Exception:
    """Return the gateway exception for a Stripe error."""
    if isinstance(error, AuthenticationError | PermissionError):
        return GatewayRejected("Stripe does not accept our credentials.", code="bad_credentials")
    if isinstance(error, RateLimitError):
        return GatewayUnreachable("Stripe is busy and rejected the request", again_in_s=BUSY_S)
    if isinstance(error, APIConnectionError):
        return OutcomeUnknown("Stripe did not respond")
    if error.http_status == 409:
        return OutcomeUnknown("Stripe still processes the same request", again_in_s=BUSY_S)
    if isinstance(error, IdempotencyError):
        return GatewayRejected("Stripe has another request with the same key.", code="idempotency_key_taken")
    if isinstance(error, APIError) or is_unclear(error):
        return OutcomeUnknown("Stripe failed to process the request", again_in_s=BUSY_S)
    return GatewayRejected(f"Stripe turned the request down: {safe_message(error)}", code=error_code(error))


def safe_message(error: StripeError) -> str:
    """Return Stripe's message as one sentence without credentials."""
    words = CREDENTIAL_PATTERN.sub("(a key)", error.user_message or "no reason given").strip()
    return words if words.endswith(".") else f"{words}."


def error_code(error: StripeError) -> str:
    """Return Stripe's error code as an identifier, preferring the issuer's decline code."""
    decline_code = error.error.decline_code if isinstance(error, CardError) and error.error else None
    return to_identifier(decline_code or error.code or "turned_down")


def to_identifier(text: str) -> str:
    """Turn a code into an identifier of at most 60 characters."""
    found = NON_IDENTIFIER.sub("_", text.lower())[:60].strip("_")
    return found if found.isidentifier() else "turned_down"
