"""Effects of Stripe events on payments, disputes, refunds and card forms.

Nothing is booked here. Only the gateway decides whether money was collected, under the payment's own
key.
"""

from datetime import datetime

from django.db.models import Q

from billing.domain.stripe_amounts import from_stripe
from billing.domain.stripe_states import DISPUTE_RANKS, INVOICE_RANKS, REFUND_RANKS
from billing.gateways.stripe import lookups
from billing.gateways.stripe.lookups import StripeDisputeOrRefund, StripeInvoice
from billing.models import (
    Payment,
    PaymentDispute,
    PaymentRefund,
    PaymentStatus,
    Refund,
    StripeCharge,
    StripeEvent,
    StripeOutcome,
    TopUp,
)
from billing.services.payments.payment_audit import record_invoice_event
from billing.services.payments.refunds import refund_creation as sending
from billing.services.payments.refunds.refund_submission import REFUND_TRANSACTIONS
from billing.services.payments.stripe import book_comparison, payment_cards
from ports import outbox
from tenants.services.actors import BILLING
from tenants.services.rls import system_scope, tenant_scope

NOT_OURS = "not from this installation"
NO_EFFECT = "no action needed"


class EventNeedsAttention(Exception):
    """A person has to look at the event; the text says why."""


class EventTooEarly(Exception):
    """The event is about something that is not in our records yet."""


def apply_event(event: StripeEvent, *, now: datetime) -> str:
    """Apply an event and return what was done.

    Raises EventNeedsAttention, EventTooEarly, or what a gateway raises.
    """
    kind = event.type
    if kind.startswith("invoice."):
        return _apply_invoice_event(event.object_id, now)
    if kind.startswith("charge.dispute."):
        return _record_dispute_or_refund(lookups.get_dispute(event.object_id), "dispute", now)
    if kind.startswith("refund."):
        return _record_dispute_or_refund(lookups.get_refund(event.object_id), "refund", now)
    if kind.startswith("checkout.session."):
        return payment_cards.handle_form_event(event.object_id, now=now)
    return NO_EFFECT


def _apply_invoice_event(stripe_id: str, now: datetime) -> str:
    there = lookups.get_invoice(stripe_id)
    if there is None or not there.payment:
        return NOT_OURS
    charge = _find_charge(Q(pk=there.payment))
    if charge is None:
        raise EventTooEarly(f"Payment {there.payment} of invoice {stripe_id} does not exist here")
    if there.status not in INVOICE_RANKS:
        raise EventNeedsAttention(f"Stripe calls invoice {stripe_id} {there.status!r}, a status that is unknown here.")
    if charge.stripe_id == stripe_id:
        _check_agreement(charge, there)
    return check_payment_now(charge, now) if there.status != "draft" else NO_EFFECT


def _check_agreement(charge: StripeCharge, there: StripeInvoice) -> None:
    """Raise EventNeedsAttention if Stripe contradicts a charge that is settled here."""
    back = book_comparison.returned_amounts([charge.pk])[charge.pk]
    if charge.outcome == StripeOutcome.DECLINED and from_stripe(there.amount_paid, there.currency) > back:
        raise EventNeedsAttention(
            f"Invoice {there.id} was paid in Stripe but is declined here as {charge.pk}. Refund it in Stripe."
        )
    if charge.outcome == StripeOutcome.SUCCEEDED and there.status != "paid":
        raise EventNeedsAttention(f"Invoice {there.id} is {there.status} in Stripe but paid here as {charge.pk}.")


def check_payment_now(charge: StripeCharge, now: datetime) -> str:
    """Make a payment or top-up that waits for an answer due now."""
    free = Q(claimed_until=None) | Q(claimed_until__lt=now)
    waits = {"pk": charge.pk, "status": PaymentStatus.PENDING, "due_at__gt": now}
    with tenant_scope(charge.tenant_id):
        if Payment.objects.filter(free, **waits).update(due_at=now):
            task = "billing.collect"
        elif TopUp.objects.filter(free, **waits).update(due_at=now):
            task = "billing.top_up"
        else:
            return NO_EFFECT
        outbox.enqueue(task, charge.pk, tenant_id=charge.tenant_id, now=now)
    return "being checked"


def _record_dispute_or_refund(there: StripeDisputeOrRefund | None, kind: str, now: datetime) -> str:
    """Record a dispute or refund of a payment; a recorded status never goes back."""
    charge = _find_charge(Q(stripe_id=there.invoice)) if there and there.invoice else None
    if there is None or charge is None:
        return NOT_OURS
    model, ranks = (PaymentDispute, DISPUTE_RANKS) if kind == "dispute" else (PaymentRefund, REFUND_RANKS)
    if there.status not in ranks:
        raise EventNeedsAttention(f"Stripe calls {kind} {there.id} {there.status!r}, a status that is unknown here.")
    fields = {"status": there.status, "rank": ranks[there.status], "seen_at": now}
    first: dict[str, object] = {"minor": from_stripe(there.amount, there.currency), "payment_id": charge.pk}
    first |= (
        {"reason": there.reason[:80], "opened_at": there.created} if kind == "dispute" else {"made_at": there.created}
    )
    with tenant_scope(charge.tenant_id):
        payment = Payment.objects.select_related("invoice").filter(pk=charge.pk).first()
        if payment is None:
            raise EventNeedsAttention(
                f"The {kind} {there.id} belongs to top-up {charge.pk}. Settle it with the tenant."
            )
        row, made = model.objects.get_or_create(
            pk=there.id, defaults={**fields, **first, "tenant_id": charge.tenant_id}
        )
        older = model.objects.filter(pk=row.pk, rank__lt=ranks[there.status])
        if not (made or older.update(**fields)):
            return NO_EFFECT
        if kind == "refund":
            _update_own_refunds(there, payment, now)
        record_invoice_event(
            f"payment.{kind}", payment.invoice, actor=BILLING, now=now, payment=charge.pk, status=there.status
        )
    return f"{kind} noted"


def _update_own_refunds(there: StripeDisputeOrRefund, payment: Payment, now: datetime) -> None:
    """Update our own refunds: record a returned one, or check pending ones now."""
    if there.status in ("failed", "canceled"):
        for gone in Refund.objects.select_related("payment__invoice").filter(reference=there.id):
            sending.credit_returned_refund(gone, now=now)
    for waits in payment.sent_back.filter(status=PaymentStatus.PENDING, due_at__gt=now, claimed_until=None):
        Refund.objects.filter(pk=waits.pk, claimed_until=None).update(due_at=now)
        REFUND_TRANSACTIONS.enqueue(waits, now=now)


def _find_charge(which: Q) -> StripeCharge | None:
    with system_scope():
        return StripeCharge.objects.filter(which).first()
