"""Taking the money of one payment: claim the row, ask the gateway with no transaction open, write what it said.

Whatever is repeated, lost or killed on the way, the gateway is only ever asked with the payment's own id as the key.
"""

from datetime import datetime, timedelta

import structlog
from django.db.models import F, Q

from billing.domain.collecting import LONGEST_WAIT_S, wait_s
from billing.models import Invoice, InvoiceStatus, Payment, PaymentStatus
from billing.models.payments import LONGEST_REASON
from billing.services.payments.opening import BILLING, record
from ports import doorbell, payments
from ports.chance import Chance
from ports.payments import Charge, Declined, KeyTaken, Outcome, Unanswered
from tenants.services.walls import as_sweep, as_tenant

log = structlog.get_logger(__name__)
CLAIM = timedelta(seconds=60)  # longer than any task lives
BATCH = 500
Hint = tuple[str, str, str]  # task, subject, tenant


def collect(payment_id: str, tenant_id: str, *, now: datetime) -> None:
    """Take a payment one step further. Safe to call at any time, any number of times, from anywhere."""
    payment = _claim(payment_id, tenant_id, now)
    if payment is None:
        return
    try:
        outcome = _ask(payment, now)
    except Unanswered as silence:
        _wait(payment, silence, now)
    else:
        _settle(payment, outcome, now)


def due(*, now: datetime) -> list[Hint]:
    """Return a look at every payment whose moment has come: hints that were lost, and silences that are over."""
    with as_sweep():
        waiting = Payment.objects.filter(status=PaymentStatus.PENDING, due_at__lte=now).order_by("due_at")
        found = waiting.values_list("pk", "tenant_id")[:BATCH]
        return [("billing.collect", payment_id, tenant_id) for payment_id, tenant_id in found]


def _claim(payment_id: str, tenant_id: str, now: datetime) -> Payment | None:
    """Take the payment for ourselves for a while; None when it is settled, not due, or another worker's."""
    free = Q(claimed_until=None) | Q(claimed_until__lt=now)
    with as_tenant(tenant_id):
        mine = Payment.objects.filter(free, pk=payment_id, status=PaymentStatus.PENDING, due_at__lte=now)
        if not mine.update(claimed_until=now + CLAIM, due_at=now + CLAIM, tries=F("tries") + 1):
            return None
        return Payment.objects.select_related("invoice").get(pk=payment_id)


def _ask(payment: Payment, now: datetime) -> Outcome:
    """Ask the gateway that the payment was opened with, and no other: it alone knows what became of the key."""
    gateway = payments.gateway()
    if gateway is None or gateway.name != payment.gateway:
        raise Unanswered(
            f"it was begun through the gateway {payment.gateway}, which is not set any longer; set it again until"
            " its payments are settled",
            again_in_s=LONGEST_WAIT_S,
        )
    charge = Charge(
        key=payment.pk,
        minor=payment.minor,
        currency=payment.currency,
        payer=payment.tenant_id,
        text=f"Invoice {payment.invoice}",
    )
    return gateway.charge(charge, now=now)


def _wait(payment: Payment, silence: Unanswered, now: datetime) -> None:
    """Ask again later, with the same key; a little apart from the others that met the same silence."""
    say = log.error if isinstance(silence, KeyTaken) else log.warning
    say("a payment has no answer", payment=payment.pk, tries=payment.tries, why=str(silence))
    seconds = silence.again_in_s or wait_s(payment.tries)
    apart = Chance(f"{payment.pk} {payment.tries}").uniform(0, seconds // 2)
    again = now + timedelta(seconds=seconds + int(apart))
    with as_tenant(payment.tenant_id):
        mine = Payment.objects.filter(
            pk=payment.pk, status=PaymentStatus.PENDING, claimed_until=payment.claimed_until
        )
        if mine.update(due_at=again, claimed_until=None, trouble=str(silence)[:LONGEST_REASON]):
            after_s = (again - now).total_seconds()
            doorbell.ring(
                "billing.collect", payment.pk, tenant_id=payment.tenant_id, now=now, after_s=after_s
            )


def _settle(payment: Payment, outcome: Outcome, now: datetime) -> None:
    """Write the outcome, and with it, in the same transaction, that the invoice is paid."""
    settled = {"settled_at": now, "due_at": None, "claimed_until": None, "trouble": ""}
    with as_tenant(payment.tenant_id):
        # The invoice first, as whoever opens a payment does: two orders of locks would wait for each other.
        invoice = Invoice.objects.select_for_update().get(pk=payment.invoice_id)
        mine = Payment.objects.filter(pk=payment.pk, status=PaymentStatus.PENDING)
        if isinstance(outcome, Declined):
            reason, code = outcome.reason[:LONGEST_REASON], outcome.code
            if mine.update(status=PaymentStatus.DECLINED, reason=reason, code=code, **settled):
                record("payment.decline", invoice, actor=BILLING, now=now, payment=payment.pk, code=code)
        elif mine.update(status=PaymentStatus.SUCCEEDED, reference=outcome.reference, **settled):
            Invoice.objects.filter(pk=invoice.pk).update(status=InvoiceStatus.PAID, paid_at=now)
            record("invoice.pay", invoice, actor=BILLING, now=now, payment=payment.pk)
