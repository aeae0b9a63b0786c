"""Refunds to the payment card through Stripe, at most one per key."""

from datetime import datetime
from typing import Any, cast

from stripe import InvalidRequestError, StripeClient, StripeError
from stripe.params import RefundCreateParams

from billing.domain.stripe_amounts import to_stripe
from billing.gateways.stripe import commands, rate_limit
from billing.gateways.stripe.commands import Params, StripeFields, StripeWrite
from billing.gateways.stripe.connection import stripe_client
from billing.gateways.stripe.error_mapping import error_code, safe_message, to_gateway_error
from billing.gateways.stripe.invoice_stages import EXPAND_PAYMENTS
from billing.models import StripeCharge, StripeOutcome
from ports.payments import Declined, GatewayOutcome, GatewayRefund, GatewayRejected, OutcomeUnknown, Succeeded
from tenants.services.rls import tenant_scope

PENDING_RETRY_S = 3600  # banks take days; usually the webhook arrives first
# Codes that mean that this refund can never succeed. Other rejections may be fixable: the account lacks the money,
# the credentials are another account's, our request was wrong. Those wait for a person.
PERMANENT_CODES = {
    "amount_too_large",
    "amount_too_small",
    "charge_already_refunded",
    "charge_disputed",
    "charge_not_refundable",
    "refund_disputed_payment",
}
NOT_CHARGED = Declined("This payment was not charged, so it cannot be refunded.", "not_charged")
PENDING_MESSAGES = {
    "pending": "the bank has not responded to Stripe yet",
    "requires_action": "Stripe waits for the payer, whom it has asked where to send the money",
}
FAILED_MESSAGE = "The bank returned the refund. Agree on another way with the tenant."


def send_refund(refund: GatewayRefund, *, now: datetime) -> GatewayOutcome:
    """Create the refund once per key and return its current outcome; raises OutcomeUnknown while pending."""
    with tenant_scope(refund.payer):
        record = StripeCharge.objects.filter(pk=refund.charge, outcome=StripeOutcome.SUCCEEDED).first()
    if record is None:
        return NOT_CHARGED
    if refund.minor > record.minor:
        return Declined("The refund exceeds the charge.", "amount_too_large")
    answer = commands.perform_write(_refund_write(refund, record, _payment_intent(record)), now=now)
    if "declined" in answer:
        return Declined(answer["reason"], answer["declined"])
    # Look up the current status, not the stored one: a bank may send back even a refund that had succeeded.
    status = _refund_status(str(answer["id"]))
    if status == "succeeded":
        return Succeeded(str(answer["id"]))
    if status in ("failed", "canceled"):
        return Declined(FAILED_MESSAGE, f"refund_{status}")
    if status in PENDING_MESSAGES:
        raise OutcomeUnknown(PENDING_MESSAGES[status], again_in_s=PENDING_RETRY_S)
    raise GatewayRejected(f"Stripe reports the unknown status {status!r} for refund {answer['id']}.", code="unforeseen")


def _refund_write(refund: GatewayRefund, record: StripeCharge, intent: str) -> StripeWrite:
    params: Params = {
        "payment_intent": intent,
        "amount": to_stripe(refund.minor, refund.currency),
        "reason": "requested_by_customer",
        "metadata": {"refund": refund.key, "payment": refund.charge, "tenant": refund.payer},
    }

    def send(client: StripeClient, stored: Params, key: str) -> Any:
        try:
            return client.v1.refunds.create(cast(RefundCreateParams, stored), {"idempotency_key": key})
        except InvalidRequestError as error:
            if error_code(error) in PERMANENT_CODES or error.param == "amount":
                return {"declined": error_code(error), "reason": safe_message(error)}
            raise

    def lookup(client: StripeClient, since: datetime) -> StripeFields | None:
        listed = client.v1.refunds.list({"payment_intent": intent, "limit": 100})
        for each in listed.auto_paging_iter():
            metadata = each.metadata.to_dict() if each.metadata else {}
            if metadata.get("refund") == refund.key:
                return _refund_fields(each)
        return None

    return StripeWrite(refund.payer, refund.key, "refund", 0, params, send, lookup, _refund_fields)


def _payment_intent(record: StripeCharge) -> str:
    """Return the payment intent that paid the charge."""
    rate_limit.reserve_call()
    try:
        invoice = stripe_client().v1.invoices.retrieve(record.stripe_id, {"expand": [EXPAND_PAYMENTS]}).to_dict()
    except StripeError as error:
        raise to_gateway_error(error) from None
    for each in invoice.get("payments", {}).get("data", []):
        intent = each["payment"].get("payment_intent")
        if isinstance(intent, dict) and intent.get("status") == "succeeded":
            return str(intent["id"])
    raise GatewayRejected(f"Stripe invoice {record.stripe_id} was not paid by payment card.", code="no_card_payment")


def _refund_status(refund_id: str) -> str:
    rate_limit.reserve_call()
    try:
        return str(stripe_client().v1.refunds.retrieve(refund_id).status)
    except StripeError as error:
        raise to_gateway_error(error) from None


def _refund_fields(refund: Any) -> StripeFields:
    if isinstance(refund, dict):
        return refund
    return {"id": refund.id, "status": refund.status, "amount": refund.amount}
