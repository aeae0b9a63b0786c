"""Payment gateway that collects each charge as a Stripe invoice with the saved card.

We rate, Stripe only collects. Its invoice is created, filled, compared with ours, finalized and paid,
each step once (commands.py). If the card is declined, the charge ends and the invoice at Stripe is
voided: nothing is ever collected under that key again. The next payment of our invoice is another charge
with an invoice of its own there.
"""

from datetime import datetime

from billing.domain.stripe_events import GATEWAY
from billing.domain.stripe_states import (
    VOIDED_STATES,
    ChargeState,
    StripeInvoiceState,
    classify_invoice,
    decline_reason,
)
from billing.gateways.stripe import charge_records, invoice_stages, refunds
from billing.gateways.stripe.commands import StripeFields
from billing.models import StripeCharge, StripeOutcome
from ports.payments import (
    Declined,
    GatewayCharge,
    GatewayOutcome,
    GatewayRefund,
    GatewayRejected,
    GatewayUnreachable,
    OutcomeUnknown,
    Succeeded,
)

TOO_SMALL = "amount_too_small"
TOO_SMALL_MESSAGE = "It is less than Stripe collects in this currency. Pay it by transfer."
WITHDRAWN = "withdrawn"
WITHDRAWN_MESSAGE = "It was cancelled before it was charged."
PENDING_RETRY_S = 1800  # a debit takes days; usually its webhook arrives first


class StripeGateway:
    """Collects charges with the payment card that a tenant saved at Stripe."""

    name = GATEWAY

    def charge(self, charge: GatewayCharge, *, now: datetime) -> GatewayOutcome:
        record = charge_records.open_record(charge, now=now)
        if record.outcome == StripeOutcome.OPEN:
            record = _prepare_invoice(record, charge, now)
        if record.outcome == StripeOutcome.OPEN:
            record = _pay(record, now)
        if record.outcome == StripeOutcome.SUCCEEDED:
            return Succeeded(record.stripe_id)
        return Declined(record.reason, record.code)

    def withdraw(self, charge: GatewayCharge, *, now: datetime) -> GatewayOutcome:
        record = charge_records.open_withdrawal_record(charge, now=now)
        if record.outcome == StripeOutcome.OPEN:
            record = _withdraw(record, now)
        if record.outcome == StripeOutcome.SUCCEEDED:
            return Succeeded(record.stripe_id)
        return Declined(record.reason, record.code)

    def refund(self, refund: GatewayRefund, *, now: datetime) -> GatewayOutcome:
        return refunds.send_refund(refund, now=now)


def _withdraw(record: StripeCharge, now: datetime) -> StripeCharge:
    """Void or delete the Stripe invoice, then report the charge as declined.

    If it was paid there meanwhile, the charge has succeeded.
    """
    found = record.stripe_id or invoice_stages.find_lost_invoice(record, now=now)
    if not found:
        return charge_records.settle_record(
            record, StripeOutcome.DECLINED, code=WITHDRAWN, reason=WITHDRAWN_MESSAGE, now=now
        )
    charge_records.set_stripe_invoice(record, found)
    invoice = invoice_stages.get_invoice_state(record)
    if invoice is None or invoice.status == "draft":
        if invoice is not None:
            invoice_stages.delete_draft(record, now=now)
        return charge_records.settle_record(
            record, StripeOutcome.DECLINED, code=WITHDRAWN, reason=WITHDRAWN_MESSAGE, now=now
        )
    state = classify_invoice(invoice, record.sent_minor)
    if state is ChargeState.PAID:
        return charge_records.settle_record(record, StripeOutcome.SUCCEEDED, now=now)
    if state is ChargeState.UNEXPECTED:
        raise _unexpected_state(record, invoice)
    if invoice.status in VOIDED_STATES:
        return charge_records.settle_record(
            record, StripeOutcome.DECLINED, code=WITHDRAWN, reason=WITHDRAWN_MESSAGE, now=now
        )
    if invoice.intent in ("processing", "succeeded"):
        raise OutcomeUnknown("the bank has not responded to Stripe yet", again_in_s=PENDING_RETRY_S)
    return _decline(record, WITHDRAWN, WITHDRAWN_MESSAGE, now)


def _prepare_invoice(record: StripeCharge, charge: GatewayCharge, now: datetime) -> StripeCharge:
    """Create, fill and finalize the Stripe invoice, without charging the card."""
    try:
        charge_records.set_stripe_invoice(record, str(invoice_stages.create_invoice(record, charge, now=now)["id"]))
        filled = invoice_stages.add_lines(record, charge, now=now)
        if (filled["total"], filled["amount_due"]) != (record.sent_minor, record.sent_minor):
            return _delete_wrong_draft(record, filled, now)
        invoice_stages.finalize_invoice(record, now=now)
    except GatewayUnreachable:
        raise
    except OutcomeUnknown as error:  # whatever happened, nothing was collected
        raise GatewayUnreachable(str(error), again_in_s=error.again_in_s) from None
    return record


def _delete_wrong_draft(record: StripeCharge, filled: StripeFields, now: datetime) -> StripeCharge:
    """Delete a draft that would not collect the due amount.

    Once finalized, Stripe would settle it from its own balance.
    """
    invoice_stages.delete_draft(record, now=now)
    total, due = filled["total"], filled["amount_due"]
    if total == record.sent_minor and due == 0:
        return charge_records.settle_record(
            record, StripeOutcome.DECLINED, code=TOO_SMALL, reason=TOO_SMALL_MESSAGE, now=now
        )
    charge_records.abandon_stripe_invoice(record)
    if total == record.sent_minor:
        raise GatewayRejected(
            f"Stripe keeps a balance for this tenant and would take {due} and not {total}, so nothing was charged."
            " Set that balance to nothing in Stripe's dashboard.",
            code="balance_at_stripe",
        )
    raise GatewayRejected(
        f"Stripe added our lines up to {total} and not to {record.sent_minor}, so nothing was charged.",
        code="total_differs",
    )


def _pay(record: StripeCharge, now: datetime) -> StripeCharge:
    """Charge the payment card or look up the result, and store it.

    Raises OutcomeUnknown while the result is unknown.
    """
    answer = invoice_stages.pay_invoice(record, now=now)
    if "declined" in answer:
        return _decline(record, answer["declined"], answer["reason"], now)
    invoice = invoice_stages.state_in_fields(answer)
    if invoice.status == "open":
        invoice = _current_state(record)
    state = classify_invoice(invoice, record.sent_minor)
    if state is ChargeState.PAID:
        return charge_records.settle_record(record, StripeOutcome.SUCCEEDED, now=now)
    if state is ChargeState.REFUSED:
        return _decline(record, *decline_reason(invoice), now)
    if state is ChargeState.UNDER_WAY:
        raise OutcomeUnknown("the bank has not responded to Stripe yet", again_in_s=PENDING_RETRY_S)
    raise _unexpected_state(record, invoice)


def _decline(record: StripeCharge, code: str, reason: str, now: datetime) -> StripeCharge:
    """Void the Stripe invoice, then report the charge as declined.

    If it was paid there meanwhile, the charge has succeeded.
    """
    try:
        invoice_stages.void_invoice(record, now=now)
    except GatewayRejected:
        if classify_invoice(_current_state(record), record.sent_minor) is ChargeState.PAID:
            return charge_records.settle_record(record, StripeOutcome.SUCCEEDED, now=now)
        raise
    return charge_records.settle_record(record, StripeOutcome.DECLINED, code=code, reason=reason, now=now)


def _current_state(record: StripeCharge) -> StripeInvoiceState:
    """Return the state of the Stripe invoice, which must exist."""
    if (invoice := invoice_stages.get_invoice_state(record)) is None:
        raise GatewayRejected(f"Stripe has no invoice {record.stripe_id} any longer.", code="resource_missing")
    return invoice


def _unexpected_state(record: StripeCharge, found: StripeInvoiceState) -> GatewayRejected:
    return GatewayRejected(
        f"Stripe's invoice {record.stripe_id} is {found.status} {found.intent},"
        f" {found.amount_paid} of {found.total} paid, which was not foreseen. Look at it in Stripe's dashboard.",
        code="unforeseen_at_stripe",
    )
