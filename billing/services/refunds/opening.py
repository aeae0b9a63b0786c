"""Sending money of a payment back to its card, as operators ask for it: out of the tenant's balance, once.

What an invoice should not have charged is given back by a credit note, to the balance; from there it can go back to
where it came from. It leaves the balance in the books when it is asked for, so that nobody spends it meanwhile.
"""

from datetime import datetime

from django.db import transaction
from django.db.models import F, Q, Sum

from billing.domain.money import Money
from billing.domain.refunding import Room, TooMuch, judge
from billing.models import (
    CreditNote,
    Invoice,
    Payment,
    PaymentDispute,
    PaymentRefund,
    PaymentStatus,
    Refund,
)
from billing.models.moves import UNSETTLED
from billing.services.ledger import books, posting
from billing.services.refunds.collecting import SENDING
from billing.services.wallets import money
from broker.services.leases import evicting
from ports import payments
from tenants.models import Tenant
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, Refused
from tenants.services.walls import as_tenant


class NotRefundable(Refused):
    code, status, title = "not-refundable", 409, "Nothing can be sent back of this payment now"


def room(payment: Payment, *, now: datetime) -> Room:
    """Return how much of a payment can go back; seven queries at most."""
    tenant = Tenant.objects.get(pk=payment.tenant_id)
    notes = CreditNote.objects.filter(invoice=payment.invoice_id).aggregate(
        back=Sum(F("total") - F("off_due") - F("to_grants"), default=0)
    )
    balance = books.balance(tenant.pk, payment.currency)
    if money.is_prepaid(tenant.pk):
        balance = min(balance, money.funds(tenant, now=now).available)
    return Room(payment.minor, gone_back(payment), notes["back"], balance, payment.currency)


def gone_back(payment: Payment) -> int:
    """Return what of a payment went back or is on its way: asked for here, made there, or lost in a dispute."""
    ours = payment.sent_back.filter(returned_at=None).exclude(status=PaymentStatus.DECLINED)
    theirs = PaymentRefund.objects.filter(payment=payment).exclude(
        Q(status__in=("failed", "canceled"))
        | Q(pk__in=payment.sent_back.exclude(reference="").values("reference"))
    )
    lost = PaymentDispute.objects.filter(payment=payment, status="lost")
    return sum(rows.aggregate(back=Sum("minor", default=0))["back"] for rows in (ours, theirs, lost))


@transaction.atomic
def refund(payment: Payment, *, minor: int, seen: int, why: str, actor: Actor, now: datetime) -> Refund:
    """Send so much of a payment back to its card; a worker does it.

    `seen` is how much had gone back when whoever asks looked, so that the same request twice, or two people at once,
    send back once. Raises Invalid for an amount that cannot go back and without a reason, NotRefundable for a payment
    that took nothing, while another refund of it is under way, and where more went back than was seen.
    """
    reason = evicting.reason(why)
    with as_tenant(payment.tenant_id):
        # The invoice first, as whoever opens or settles a payment or writes a credit note does.
        Invoice.objects.select_for_update().get(pk=payment.invoice_id)
        money.locked(payment.tenant)
        payment = Payment.objects.select_related("invoice").get(pk=payment.pk)
        _check(payment)
        left = room(payment, now=now)
        if left.back != seen:
            raise NotRefundable(
                f"Of this payment {Money(left.back, left.currency)} went back by now, not"
                f" {Money(seen, left.currency)} as when you looked.",
                fix="Look at its refunds: yours may be among them. If not, ask once more.",
            )
        try:
            judge(left, minor)
        except TooMuch as much:
            raise Invalid("amount", str(much), fix="Send back less, or nothing.") from much
        made = Refund.objects.create(
            tenant_id=payment.tenant_id,
            payment=payment,
            minor=minor,
            currency=payment.currency,
            gateway=payment.gateway,
            why=reason,
            opened_at=now,
            opened_by=actor.id,
            due_at=now,
        )
        SENDING.record("open", made, actor=actor, now=now, reason=reason)
        SENDING.ring(made, now=now)
        posting.refunded([made.pk], now=now)
        return made


@transaction.atomic
def ask_again(refund: Refund, *, actor: Actor, now: datetime) -> None:
    """Have a refund that is stuck asked for again, with the same key. Raises NotRefundable."""
    with as_tenant(refund.tenant_id):
        SENDING.lock(refund)
        found = SENDING.rows().get(pk=refund.pk)
        if found.status != PaymentStatus.STUCK:
            raise NotRefundable(f"Refund {found.pk} is {found.status}.", fix="There is nothing to ask again.")
        SENDING.anew(found, now=now)
        SENDING.record("retry", found, actor=actor, now=now)


@transaction.atomic
def came_back(refund: Refund, *, now: datetime) -> bool:
    """The bank did not take it after all: it is on the tenant's balance again. Tell whether that is new."""
    with as_tenant(refund.tenant_id):
        SENDING.lock(refund)
        return SENDING.returned(refund, now=now)


def _check(payment: Payment) -> None:
    if payment.status != PaymentStatus.SUCCEEDED:
        raise NotRefundable(
            f"Payment {payment.pk} is {payment.status}; only one that succeeded took anything.",
            fix="Look at the invoice's other payments.",
        )
    if waits := payment.sent_back.filter(status__in=UNSETTLED).first():
        raise NotRefundable(
            f"Refund {waits.pk} of {Money(waits.minor, waits.currency)} is {waits.status}.",
            fix="Wait until it is settled, or have it asked for again.",
        )
    gateway = payments.gateway()
    if gateway is None or gateway.name != payment.gateway:
        raise NotRefundable(
            f"Payment {payment.pk} was taken through {payment.gateway}, which is not set here any longer.",
            fix="Set it again, or pay the money out by transfer.",
        )
