"""Stripe states of invoices, payments, disputes and refunds (B35)."""

import typing

import pytest
import stripe

from billing.domain.stripe_states import (
    ACTION,
    DISPUTE_RANKS,
    INTENT_STATES,
    INVOICE_RANKS,
    REFUND_RANKS,
    REFUSAL,
    VOIDED,
    VOIDED_STATES,
    ChargeState,
    StripeInvoiceState,
    classify_invoice,
    decline_reason,
)


def sdk_states(thing: type, name: str) -> set[str]:
    """Return the values that the pinned SDK lists for a state."""
    found: set[str] = set()

    def walk(kind: object) -> None:
        if typing.get_origin(kind) is typing.Literal:
            found.update(typing.get_args(kind))
        else:
            for each in typing.get_args(kind):
                walk(each)

    walk(thing.__annotations__[name])
    return found


def test_every_status_of_the_pinned_stripe_version_is_known() -> None:
    assert sdk_states(stripe.Invoice, "status") == set(INVOICE_RANKS)
    assert sdk_states(stripe.PaymentIntent, "status") == set(INTENT_STATES) - {""}
    assert sdk_states(stripe.Dispute, "status") == set(DISPUTE_RANKS)
    assert set(REFUND_RANKS) == {"pending", "requires_action", "succeeded", "failed", "canceled"}


@pytest.mark.parametrize(
    ("status", "paid", "intent", "verdict"),
    [
        ("paid", 200, "succeeded", ChargeState.PAID),
        ("paid", 0, "", ChargeState.UNEXPECTED),
        ("paid", 199, "", ChargeState.UNEXPECTED),
        ("void", 0, "", ChargeState.REFUSED),
        ("uncollectible", 0, "", ChargeState.REFUSED),
        ("void", 200, "", ChargeState.UNEXPECTED),
        ("draft", 0, "", ChargeState.UNEXPECTED),
        (None, 0, "", ChargeState.UNEXPECTED),
        ("teleported", 0, "", ChargeState.UNEXPECTED),
        ("open", 100, "processing", ChargeState.UNEXPECTED),
        ("open", 0, "teleported", ChargeState.UNEXPECTED),
        *[("open", 0, intent, verdict) for intent, verdict in INTENT_STATES.items()],
    ],
)
def test_each_invoice_state_is_classified(status: str | None, paid: int, intent: str, verdict: ChargeState) -> None:
    assert classify_invoice(StripeInvoiceState(status, 200, paid, intent), 200) is verdict


def test_an_invoice_with_another_total_is_unexpected() -> None:
    assert classify_invoice(StripeInvoiceState("paid", 201, 201), 200) is ChargeState.UNEXPECTED
    assert classify_invoice(StripeInvoiceState("paid", 201, 200), 200) is ChargeState.UNEXPECTED
    assert classify_invoice(StripeInvoiceState("open", 201, 0, "processing"), 200) is ChargeState.UNEXPECTED


def test_a_declined_charge_has_a_code_and_a_reason() -> None:
    assert decline_reason(StripeInvoiceState(VOIDED_STATES[0], 1, 0, "canceled", "card_declined", "No.")) == VOIDED
    assert decline_reason(
        StripeInvoiceState("open", 1, 0, "requires_payment_method", "expired_card", "It is old.")
    ) == (
        "expired_card",
        "It is old.",
    )
    assert decline_reason(StripeInvoiceState("open", 1, 0, "requires_action")) == ACTION
    assert decline_reason(StripeInvoiceState("open", 1, 0, "requires_payment_method")) == REFUSAL
