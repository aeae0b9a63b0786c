"""Sending money of a charge back to its card: one refund at Stripe for each key, found again by what it notes."""

from datetime import datetime
from typing import Any, cast

from stripe import InvalidRequestError, StripeClient, StripeError
from stripe.params import RefundCreateParams

from billing.domain.stripe_amounts import of_minor
from billing.gateways.stripe import commands, pace
from billing.gateways.stripe.commands import Answer, Params, Write
from billing.gateways.stripe.connecting import client
from billing.gateways.stripe.steps import PAYMENTS
from billing.gateways.stripe.troubles import code_of, said, trouble
from billing.models import StripeCharge, StripeOutcome
from ports.payments import Declined, Outcome, Rejected, SendBack, Succeeded, Unanswered
from tenants.services.walls import as_tenant

SLOW_S = 3600  # banks take days; the webhook is faster than this
# What Stripe says where so much will never go back of this charge. Whatever else it turns down may be ours to mend: its
# account lacks the money, its credentials are another account's, our request was wrong. That waits for a person.
NEVER = {
    "amount_too_large",
    "amount_too_small",
    "charge_already_refunded",
    "charge_disputed",
    "charge_not_refundable",
    "refund_disputed_payment",
}
NOTHING_TAKEN = Declined("Nothing was taken by this payment, so nothing can go back.", "nothing_taken")
WAITS = {
    "pending": "the bank has not answered Stripe yet",
    "requires_action": "Stripe waits for the payer, whom it has asked where to send the money",
}
FAILED = "The bank sent it back. Find another way with the tenant."


def send(back: SendBack, *, now: datetime) -> Outcome:
    """Send it back, or say what became of the refund with this key."""
    with as_tenant(back.payer):
        book = StripeCharge.objects.filter(pk=back.charge, outcome=StripeOutcome.SUCCEEDED).first()
    if book is None:
        return NOTHING_TAKEN
    if back.minor > book.minor:
        return Declined("More cannot go back than was taken.", "amount_too_large")
    answer = commands.perform(_write(back, book, _intent(book)), now=now)
    if "declined" in answer:
        return Declined(answer["reason"], answer["declined"])
    # Never what it was when it was made, which stands in our books: a bank sends back what had succeeded, too.
    status = _status(str(answer["id"]))
    if status == "succeeded":
        return Succeeded(str(answer["id"]))
    if status in ("failed", "canceled"):
        return Declined(FAILED, f"refund_{status}")
    if status in WAITS:
        raise Unanswered(WAITS[status], again_in_s=SLOW_S)
    raise Rejected(
        f"Stripe calls refund {answer['id']} {status!r}, a word that is not known here.", code="unforeseen"
    )


def _write(back: SendBack, book: StripeCharge, intent: str) -> Write:
    params: Params = {
        "payment_intent": intent,
        "amount": of_minor(back.minor, back.currency),
        "reason": "requested_by_customer",
        "metadata": {"refund": back.key, "payment": back.charge, "tenant": back.payer},
    }

    def send_(speaks: StripeClient, frozen: Params, idem: str) -> Any:
        try:
            return speaks.v1.refunds.create(cast(RefundCreateParams, frozen), {"idempotency_key": idem})
        except InvalidRequestError as refusal:
            if code_of(refusal) in NEVER or refusal.param == "amount":
                return {"declined": code_of(refusal), "reason": said(refusal)}
            raise

    def look(speaks: StripeClient, since: datetime) -> Answer | None:
        listed = speaks.v1.refunds.list({"payment_intent": intent, "limit": 100})
        for each in listed.auto_paging_iter():
            meant = each.metadata.to_dict() if each.metadata else {}
            if meant.get("refund") == back.key:
                return _kept(each)
        return None

    return Write(back.payer, back.key, "refund", 0, params, send_, look, _kept)


def _intent(book: StripeCharge) -> str:
    """Return what the charge was paid by; of several attempts the one that succeeded."""
    pace.take()
    try:
        told = client().v1.invoices.retrieve(book.stripe_id, {"expand": [PAYMENTS]}).to_dict()
    except StripeError as error:
        raise trouble(error) from None
    for each in told.get("payments", {}).get("data", []):
        intent = each["payment"].get("payment_intent")
        if isinstance(intent, dict) and intent.get("status") == "succeeded":
            return str(intent["id"])
    raise Rejected(f"Stripe's invoice {book.stripe_id} was paid by no card.", code="no_card_payment")


def _status(refund_id: str) -> str:
    pace.take()
    try:
        return str(client().v1.refunds.retrieve(refund_id).status)
    except StripeError as error:
        raise trouble(error) from None


def _kept(refund: Any) -> Answer:
    if isinstance(refund, dict):
        return refund
    return {"id": refund.id, "status": refund.status, "amount": refund.amount}
