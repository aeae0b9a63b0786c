"""Meaning of Stripe's invoice, payment, dispute and refund states, for the pinned API version.

A state that is not listed is never guessed: it is reported to people and nothing is booked.
"""

from dataclasses import dataclass
from enum import StrEnum


class ChargeState(StrEnum):
    PAID = "paid"
    REFUSED = "refused"  # nothing was collected, and nothing will be
    UNDER_WAY = "under_way"
    UNEXPECTED = "unexpected"  # a person has to look at it


@dataclass(frozen=True, slots=True)
class StripeInvoiceState:
    """The state of an invoice at Stripe; amounts are Stripe's integers."""

    status: str | None
    total: int
    amount_paid: int
    intent: str = ""  # the state of the latest attempt to pay it
    code: str = ""
    reason: str = ""


# The outcome of an open invoice by the state of its payment intent.
INTENT_STATES: dict[str, ChargeState] = {
    "": ChargeState.UNDER_WAY,
    "processing": ChargeState.UNDER_WAY,
    "succeeded": ChargeState.UNDER_WAY,  # the invoice follows in a moment
    "requires_capture": ChargeState.UNEXPECTED,  # we never use manual capture
    "requires_confirmation": ChargeState.REFUSED,
    "requires_action": ChargeState.REFUSED,  # the bank wants the cardholder to confirm, who is not there
    "requires_payment_method": ChargeState.REFUSED,
    "canceled": ChargeState.REFUSED,
}
# Progress of an invoice at Stripe; it only ever increases.
INVOICE_RANKS: dict[str, int] = {"draft": 1, "open": 2, "paid": 3, "uncollectible": 3, "void": 3}
VOIDED_STATES = ("uncollectible", "void")
DISPUTE_RANKS: dict[str, int] = {
    "warning_needs_response": 1,
    "warning_under_review": 2,
    "warning_closed": 9,
    "needs_response": 3,
    "under_review": 4,
    "appeal_needs_response": 5,
    "appeal_under_review": 6,
    "lost": 9,
    "won": 9,
    "prevented": 9,
}
REFUND_RANKS: dict[str, int] = {
    "pending": 1,
    "requires_action": 1,
    "succeeded": 2,
    "failed": 3,  # possible even after success: the bank sent it back
    "canceled": 3,
}
VOIDED = "voided_at_stripe", "The invoice was voided in Stripe."
ACTION = (
    "authentication_required",
    "The bank requires confirmation by the cardholder. Pay with another payment card, or add this one again.",
)
REFUSAL = "card_declined", "The payment card was declined."


def classify_invoice(seen: StripeInvoiceState, expected: int) -> ChargeState:
    """Return the outcome of a Stripe invoice that should be of `expected`."""
    if seen.total != expected:
        return ChargeState.UNEXPECTED
    if seen.status == "paid":
        return ChargeState.PAID if seen.amount_paid == expected else ChargeState.UNEXPECTED
    if seen.status in VOIDED_STATES:
        return ChargeState.REFUSED if not seen.amount_paid else ChargeState.UNEXPECTED
    if seen.status == "open" and not seen.amount_paid:
        return INTENT_STATES.get(seen.intent, ChargeState.UNEXPECTED)
    return ChargeState.UNEXPECTED


def decline_reason(seen: StripeInvoiceState) -> tuple[str, str]:
    """Return the code and the message of a declined charge."""
    if seen.status in VOIDED_STATES:
        return VOIDED
    if seen.code and seen.reason:
        return seen.code, seen.reason
    return ACTION if seen.intent == "requires_action" else REFUSAL
