"""Open refunds of a payment to its card, on an operator's request, from the balance.

What an invoice charged wrongly is given back by a credit note, to the balance; from there it can go
back to where it came from. The refund leaves the balance in the ledger when it is requested, so
that nobody spends it meanwhile.
"""

from datetime import datetime

from django.db import transaction
from django.db.models import F, Q, Sum

from billing.domain.money import Money
from billing.domain.refunds import RefundLimits, RefundTooLarge, check_refund
from billing.models import CreditNote, Invoice, Payment, PaymentDispute, PaymentRefund, PaymentStatus, Refund
from billing.models.payments import UNSETTLED
from billing.services.funds.wallets import wallet_balances
from billing.services.ledger import ledger_balances, posting
from billing.services.payments.refunds.refund_submission import REFUND_TRANSACTIONS
from broker.services.leases.lifecycle import eviction
from ports import payments
from tenants.models import Tenant
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ProblemError
from tenants.services.rls import tenant_scope


class NotRefundable(ProblemError):
    code, status, title = "not-refundable", 409, "The payment cannot be refunded now"


def refund_limits(payment: Payment, *, now: datetime) -> RefundLimits:
    """Return how much of a payment can be refunded; seven queries at most."""
    tenant = Tenant.objects.get(pk=payment.tenant_id)
    notes = CreditNote.objects.filter(invoice=payment.invoice_id).aggregate(
        back=Sum(F("total") - F("reduced_due") - F("to_grants"), default=0)
    )
    balance = ledger_balances.available_balance(tenant.pk, payment.currency)
    if wallet_balances.is_prepaid(tenant.pk):
        balance = min(balance, wallet_balances.wallet_funds(tenant, now=now).available)
    return RefundLimits(payment.minor, refunded_amount(payment), notes["back"], balance, payment.currency)


def refunded_amount(payment: Payment) -> int:
    """Return what of a payment was refunded or lost in a dispute.

    Pending refunds count.
    """
    own_refunds = payment.sent_back.filter(returned_at=None).exclude(status=PaymentStatus.DECLINED)
    foreign_refunds = PaymentRefund.objects.filter(payment=payment).exclude(
        Q(status__in=("failed", "canceled")) | Q(pk__in=payment.sent_back.exclude(reference="").values("reference"))
    )
    lost = PaymentDispute.objects.filter(payment=payment, status="lost")
    return sum(rows.aggregate(back=Sum("minor", default=0))["back"] for rows in (own_refunds, foreign_refunds, lost))


@transaction.atomic
def open_refund(payment: Payment, *, minor: int, seen: int, why: str, actor: Actor, now: datetime) -> Refund:
    """Open a refund of part of a payment; a worker sends it.

    `seen` is how much had been refunded when the caller looked, so that the same request twice, or two
    people at once, refund once. Raises InvalidValue for an amount that cannot be refunded or without a
    reason; NotRefundable for a payment that took nothing, while another refund of it is pending, and if
    more was refunded than was seen.
    """
    reason = eviction.clean_reason(why)
    with tenant_scope(payment.tenant_id):
        # Lock the invoice first, as opening and settling a payment and crediting do.
        Invoice.objects.select_for_update().get(pk=payment.invoice_id)
        wallet_balances.lock_wallet(payment.tenant)
        payment = Payment.objects.select_related("invoice").get(pk=payment.pk)
        _check_refundable(payment)
        limits = refund_limits(payment, now=now)
        if limits.refunded != seen:
            raise NotRefundable(
                f"{Money(limits.refunded, limits.currency)} of this payment has been refunded, not"
                f" {Money(seen, limits.currency)} as shown on your page.",
                fix="Check its refunds: yours may be among them. If not, try again.",
            )
        try:
            check_refund(limits, minor)
        except RefundTooLarge as much:
            raise InvalidValue("amount", str(much), fix="Enter a lower amount.") from much
        made = REFUND_TRANSACTIONS.open(
            actor=actor,
            now=now,
            detail={"reason": reason},
            tenant_id=payment.tenant_id,
            payment=payment,
            minor=minor,
            currency=payment.currency,
            gateway=payment.gateway,
            why=reason,
            opened_by=actor.id,
        )
        posting.post_refunds([made.pk], now=now)
        return made


@transaction.atomic
def retry_refund(refund: Refund, *, actor: Actor, now: datetime) -> None:
    """Retry a stuck refund with the same key. Raises NotRefundable."""
    with tenant_scope(refund.tenant_id):
        REFUND_TRANSACTIONS.lock(refund)
        found = REFUND_TRANSACTIONS.rows().get(pk=refund.pk)
        if found.status != PaymentStatus.STUCK:
            raise NotRefundable(f"Refund {found.pk} is {found.status}.", fix="No retry is needed.")
        REFUND_TRANSACTIONS.retry(found, actor=actor, now=now)


@transaction.atomic
def credit_returned_refund(refund: Refund, *, now: datetime) -> bool:
    """Credit the balance for a refund the bank returned; return whether that is new."""
    with tenant_scope(refund.tenant_id):
        REFUND_TRANSACTIONS.lock(refund)
        return REFUND_TRANSACTIONS.returned(refund, now=now)


def _check_refundable(payment: Payment) -> None:
    if payment.status != PaymentStatus.SUCCEEDED:
        raise NotRefundable(
            f"Payment {payment.pk} is {payment.status}; only successful payments can be refunded.",
            fix="Check the invoice's other payments.",
        )
    if waits := payment.sent_back.filter(status__in=UNSETTLED).first():
        raise NotRefundable(
            f"Refund {waits.pk} of {Money(waits.minor, waits.currency)} is {waits.status}.",
            fix="Wait until it is settled, or retry it.",
        )
    gateway = payments.gateway()
    if gateway is None or gateway.name != payment.gateway:
        raise NotRefundable(
            f"Payment {payment.pk} was charged through {payment.gateway}, which is no longer configured here.",
            fix="Configure it again, or refund by bank transfer.",
        )
