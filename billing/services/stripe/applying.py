"""What an event leads to: a payment is asked for now rather than later, a dispute or a refund is noted, a card saved.

Nothing is booked here. Whether money was taken is only ever said by the gateway, under the payment's own key.
"""

from datetime import datetime

from django.db.models import Q

from billing.domain.stripe_amounts import to_minor
from billing.domain.stripe_states import DISPUTES, RANK, REFUNDS
from billing.gateways.stripe import looking
from billing.gateways.stripe.looking import InvoiceThere, MarkThere
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
from billing.services.moves.moving import BILLING
from billing.services.payments.trail import record
from billing.services.refunds import opening as sending
from billing.services.refunds.collecting import SENDING
from billing.services.stripe import cards, three_books
from ports import doorbell
from tenants.services.walls import as_sweep, as_tenant

NOT_OURS = "not one of ours"
NOTHING = "nothing to do"


class Parked(Exception):
    """A person has to look at it: the text says at what."""


class TooEarly(Exception):
    """It is about something that is not in our books yet."""


def apply(event: StripeEvent, *, now: datetime) -> str:
    """Do what an event asks for and say what came of it, or raise Parked, TooEarly, or what a gateway raises."""
    kind = event.type
    if kind.startswith("invoice."):
        return _invoice(event.object_id, now)
    if kind.startswith("charge.dispute."):
        return _mark(looking.dispute(event.object_id), "dispute", now)
    if kind.startswith("refund."):
        return _mark(looking.refund(event.object_id), "refund", now)
    if kind.startswith("checkout.session."):
        return cards.heard(event.object_id, now=now)
    return NOTHING


def _invoice(stripe_id: str, now: datetime) -> str:
    there = looking.invoice(stripe_id)
    if there is None or not there.payment:
        return NOT_OURS
    charge = _charge(Q(pk=there.payment))
    if charge is None:
        raise TooEarly(f"Payment {there.payment} of invoice {stripe_id} is not in our books")
    if there.status not in RANK:
        raise Parked(f"Stripe calls invoice {stripe_id} {there.status!r}, a word that is not known here.")
    if charge.stripe_id == stripe_id:
        _disagree(charge, there)
    return bring_forward(charge, now) if there.status != "draft" else NOTHING


def _disagree(charge: StripeCharge, there: InvoiceThere) -> None:
    """Raise Parked where Stripe says something else about a charge that is settled here."""
    back = three_books.gone_back([charge.pk])[charge.pk]
    if charge.outcome == StripeOutcome.DECLINED and to_minor(there.amount_paid, there.currency) > back:
        raise Parked(
            f"Invoice {there.id} was paid at Stripe, and is declined here as {charge.pk}. Refund it there."
        )
    if charge.outcome == StripeOutcome.SUCCEEDED and there.status != "paid":
        raise Parked(f"Invoice {there.id} is {there.status} at Stripe, and paid here as {charge.pk}.")


def bring_forward(charge: StripeCharge, now: datetime) -> str:
    """Have a payment or a top-up that waits for an answer asked about now."""
    free = Q(claimed_until=None) | Q(claimed_until__lt=now)
    waits = {"pk": charge.pk, "status": PaymentStatus.PENDING, "due_at__gt": now}
    with as_tenant(charge.tenant_id):
        if Payment.objects.filter(free, **waits).update(due_at=now):
            task = "billing.collect"
        elif TopUp.objects.filter(free, **waits).update(due_at=now):
            task = "billing.top_up"
        else:
            return NOTHING
        doorbell.ring(task, charge.pk, tenant_id=charge.tenant_id, now=now)
    return "asked about now"


def _mark(there: MarkThere | None, kind: str, now: datetime) -> str:
    """Note a dispute or a refund beside its payment; what is noted never goes back."""
    charge = _charge(Q(stripe_id=there.invoice)) if there and there.invoice else None
    if there is None or charge is None:
        return NOT_OURS
    model, ranks = (PaymentDispute, DISPUTES) if kind == "dispute" else (PaymentRefund, REFUNDS)
    if there.status not in ranks:
        raise Parked(f"Stripe calls {kind} {there.id} {there.status!r}, a word that is not known here.")
    fields = {"status": there.status, "rank": ranks[there.status], "seen_at": now}
    first: dict[str, object] = {"minor": to_minor(there.amount, there.currency), "payment_id": charge.pk}
    first |= (
        {"reason": there.reason[:80], "opened_at": there.created}
        if kind == "dispute"
        else {"made_at": there.created}
    )
    with as_tenant(charge.tenant_id):
        payment = Payment.objects.select_related("invoice").filter(pk=charge.pk).first()
        if payment is None:
            raise Parked(f"The {kind} {there.id} is of top-up {charge.pk}: settle it with the tenant.")
        row, made = model.objects.get_or_create(
            pk=there.id, defaults={**fields, **first, "tenant_id": charge.tenant_id}
        )
        older = model.objects.filter(pk=row.pk, rank__lt=ranks[there.status])
        if not (made or older.update(**fields)):
            return NOTHING
        if kind == "refund":
            _ours(there, payment, now)
        record(
            f"payment.{kind}", payment.invoice, actor=BILLING, now=now, payment=charge.pk, status=there.status
        )
    return f"{kind} noted"


def _ours(there: MarkThere, payment: Payment, now: datetime) -> None:
    """Where we asked for the refund: take note that it came back, or have it asked about now."""
    if there.status in ("failed", "canceled"):
        for gone in Refund.objects.select_related("payment__invoice").filter(reference=there.id):
            sending.came_back(gone, now=now)
    for waits in payment.sent_back.filter(status=PaymentStatus.PENDING, due_at__gt=now, claimed_until=None):
        Refund.objects.filter(pk=waits.pk, claimed_until=None).update(due_at=now)
        SENDING.ring(waits, now=now)


def _charge(which: Q) -> StripeCharge | None:
    with as_sweep():
        return StripeCharge.objects.filter(which).first()
