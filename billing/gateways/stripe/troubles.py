"""What Stripe's errors mean for a charge: ask again, ask a person, or the card said no."""

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

from ports.payments import Rejected, Unanswered, Unreachable

BUSY_S = 5
KEYLIKE = re.compile(r"\b(?:sk|rk|pk|whsec)_\S+")  # Stripe's words may repeat what they were sent
WORD = re.compile(r"[^a-z0-9_]+")


def unclear(error: StripeError) -> bool:
    """Tell whether Stripe failed over a call, so that nobody knows how far it came."""
    return (error.http_status or 0) >= 500


def trouble(error: StripeError) -> Exception:
    """Return what a gateway raises for it."""
    if isinstance(error, AuthenticationError | PermissionError):
        return Rejected("Stripe does not accept our credentials.", code="bad_credentials")
    if isinstance(error, RateLimitError):
        return Unreachable("Stripe is busy and turned us away", again_in_s=BUSY_S)
    if isinstance(error, APIConnectionError):
        return Unanswered("Stripe did not answer")
    if error.http_status == 409:
        return Unanswered("Stripe still works on the same request", again_in_s=BUSY_S)
    if isinstance(error, IdempotencyError):
        return Rejected(
            "Stripe holds another request under the key of this one.", code="idempotency_key_taken"
        )
    if isinstance(error, APIError) or unclear(error):
        return Unanswered("Stripe failed over the request", again_in_s=BUSY_S)
    return Rejected(f"Stripe turned the request down: {said(error)}", code=code_of(error))


def said(error: StripeError) -> str:
    """Return Stripe's own words as one sentence that holds no credential."""
    words = KEYLIKE.sub("(a key)", error.user_message or "it did not say why").strip()
    return words if words.endswith(".") else f"{words}."


def code_of(error: StripeError) -> str:
    """Return Stripe's code as an identifier; of a card's refusal the issuer's word, where there is one."""
    told = error.error.decline_code if isinstance(error, CardError) and error.error else None
    return word(told or error.code or "turned_down")


def word(text: str) -> str:
    """Make an identifier of at most 60 letters of a code."""
    found = WORD.sub("_", text.lower())[:60].strip("_")
    return found if found.isidentifier() else "turned_down"
