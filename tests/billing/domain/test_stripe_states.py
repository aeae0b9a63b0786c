"""Every word that Stripe has for an invoice, its payment, a dispute or a refund means something to us (B35)."""

import typing

import pytest
import stripe

from billing.domain.stripe_states import (
    ACTION,
    DISPUTES,
    GONE,
    INTENTS,
    RANK,
    REFUNDS,
    REFUSAL,
    VOIDED,
    Seen,
    Verdict,
    judge,
    refusal,
)


def words(thing: type, name: str) -> set[str]:
    """Return the words that the pinned SDK lists for a state."""
    found: set[str] = set()

    def walk(kind: object) -> None:
        if typing.get_origin(kind) is typing.Literal:
            found.update(typing.get_args(kind))
        else:
            for each in typing.get_args(kind):
                walk(each)

    walk(thing.__annotations__[name])
    return found


def test_no_word_of_the_pinned_version_is_missing() -> None:
    assert words(stripe.Invoice, "status") == set(RANK)
    assert words(stripe.PaymentIntent, "status") == set(INTENTS) - {""}
    assert words(stripe.Dispute, "status") == set(DISPUTES)
    assert set(REFUNDS) == {"pending", "requires_action", "succeeded", "failed", "canceled"}


@pytest.mark.parametrize(
    ("status", "paid", "intent", "verdict"),
    [
        ("paid", 200, "succeeded", Verdict.PAID),
        ("paid", 0, "", Verdict.ODD),
        ("paid", 199, "", Verdict.ODD),
        ("void", 0, "", Verdict.REFUSED),
        ("uncollectible", 0, "", Verdict.REFUSED),
        ("void", 200, "", Verdict.ODD),
        ("draft", 0, "", Verdict.ODD),
        (None, 0, "", Verdict.ODD),
        ("teleported", 0, "", Verdict.ODD),
        ("open", 100, "processing", Verdict.ODD),
        ("open", 0, "teleported", Verdict.ODD),
        *[("open", 0, intent, verdict) for intent, verdict in INTENTS.items()],
    ],
)
def test_each_is_judged(status: str | None, paid: int, intent: str, verdict: Verdict) -> None:
    assert judge(Seen(status, 200, paid, intent), 200) is verdict


def test_an_invoice_of_another_total_is_never_believed() -> None:
    assert judge(Seen("paid", 201, 201), 200) is Verdict.ODD
    assert judge(Seen("paid", 201, 200), 200) is Verdict.ODD
    assert judge(Seen("open", 201, 0, "processing"), 200) is Verdict.ODD


def test_a_refusal_says_why() -> None:
    assert refusal(Seen(GONE[0], 1, 0, "canceled", "card_declined", "No.")) == VOIDED
    assert refusal(Seen("open", 1, 0, "requires_payment_method", "expired_card", "It is old.")) == (
        "expired_card",
        "It is old.",
    )
    assert refusal(Seen("open", 1, 0, "requires_action")) == ACTION
    assert refusal(Seen("open", 1, 0, "requires_payment_method")) == REFUSAL
