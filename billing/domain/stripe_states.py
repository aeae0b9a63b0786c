"""What Stripe's words for an invoice and for its payment mean for us: every word of the pinned version, by name.

A word that is not here is nobody's guess: it is told to people, and nothing is booked.
"""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    PAID = "paid"
    REFUSED = "refused"  # nothing was taken, and nothing will be
    UNDER_WAY = "under_way"
    ODD = "odd"  # for people


@dataclass(frozen=True, slots=True)
class Seen:
    """An invoice at Stripe as it is told there: amounts are Stripe's integers."""

    status: str | None
    total: int
    amount_paid: int
    intent: str = ""  # the state of the latest attempt to pay it
    code: str = ""
    reason: str = ""


# What an open invoice is waiting for, by the state of its payment.
INTENTS: dict[str, Verdict] = {
    "": Verdict.UNDER_WAY,
    "processing": Verdict.UNDER_WAY,
    "succeeded": Verdict.UNDER_WAY,  # the invoice says so in a moment
    "requires_capture": Verdict.ODD,  # we never ask for that
    "requires_confirmation": Verdict.REFUSED,
    "requires_action": Verdict.REFUSED,  # the bank wants the person, and nobody is there
    "requires_payment_method": Verdict.REFUSED,
    "canceled": Verdict.REFUSED,
}
# How far an invoice at Stripe has come; it never goes back.
RANK: dict[str, int] = {"draft": 1, "open": 2, "paid": 3, "uncollectible": 3, "void": 3}
GONE = ("uncollectible", "void")
DISPUTES: dict[str, int] = {
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
REFUNDS: dict[str, int] = {
    "pending": 1,
    "requires_action": 1,
    "succeeded": 2,
    "failed": 3,  # also after it had succeeded: the bank sent it back
    "canceled": 3,
}
VOIDED = "voided_at_stripe", "Its invoice was voided at Stripe."
ACTION = (
    "authentication_required",
    "The bank wants the cardholder to confirm it. Pay with another card, or add it again.",
)
REFUSAL = "card_declined", "The card was declined."


def judge(seen: Seen, expected: int) -> Verdict:
    """Say what an invoice of `expected` is worth to us."""
    if seen.total != expected:
        return Verdict.ODD
    if seen.status == "paid":
        return Verdict.PAID if seen.amount_paid == expected else Verdict.ODD
    if seen.status in GONE:
        return Verdict.REFUSED if not seen.amount_paid else Verdict.ODD
    if seen.status == "open" and not seen.amount_paid:
        return INTENTS.get(seen.intent, Verdict.ODD)
    return Verdict.ODD


def refusal(seen: Seen) -> tuple[str, str]:
    """Return the code and the sentence of a refusal."""
    if seen.status in GONE:
        return VOIDED
    if seen.code and seen.reason:
        return seen.code, seen.reason
    return ACTION if seen.intent == "requires_action" else REFUSAL
