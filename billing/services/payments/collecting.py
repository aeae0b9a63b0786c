"""Taking the money of one payment: claim the row, ask the gateway with no transaction open, write what it said.

A silence is asked about again for as long as it takes. What is no use to ask again, and what went wrong as nobody
foresaw too often in a row, is stuck: it waits for a person, who has the same payment asked for again.

Whatever is repeated, lost or killed on the way, the gateway is only ever asked with the payment's own id as the key.
"""

from datetime import datetime, timedelta

import structlog
from django.db.models import Case, F, Q, QuerySet, When

from billing.domain.collecting import LONGEST_WAIT_S, MOST_FALLS, wait_s
from billing.models import Invoice, InvoiceStatus, Payment, PaymentStatus
from billing.models.payments import LONGEST_REASON, UNSETTLED
from billing.services.ledger import posting
from billing.services.payments.asking import charge_of
from billing.services.payments.opening import BILLING, record
from billing.services.post import queue
from ports import doorbell, payments
from ports.chance import Chance
from ports.payments import Declined, Outcome, Rejected, Unanswered
from tenants.services.walls import as_sweep, as_tenant

log = structlog.get_logger(__name__)
CLAIM = timedelta(seconds=60)  # longer than any task lives
BATCH = 500
UNFORESEEN = "unforeseen"
DIED = f"{MOST_FALLS} attempts in a row ended with the death of the process that made them."
Hint = tuple[str, str, str]  # task, subject, tenant


def collect(payment_id: str, tenant_id: str, *, now: datetime) -> None:
    """Take a payment one step further. Safe to call at any time, any number of times, from anywhere."""
    payment = _claim(payment_id, tenant_id, now)
    if payment is None:
        return
    if payment.fell >= MOST_FALLS:
        _stick(payment, DIED, UNFORESEEN, now)
        return
    try:
        outcome = _ask(payment, now)
    except Unanswered as silence:
        log.warning("a payment has no answer", payment=payment.pk, tries=payment.tries, why=str(silence))
        _wait(payment, silence.again_in_s or wait_s(payment.tries), str(silence), now)
    except Rejected as rejection:
        _stick(payment, rejection.reason, rejection.code, now)
    else:
        _settle(payment, outcome, now)


def fall(payment_id: str, tenant_id: str, error: Exception, *, now: datetime) -> bool:
    """Note that a try, begun at `now`, ended as nobody foresaw; tell whether it had come as far as a payment.

    It is tried again a few times, less and less often. Whether money moved is unknown, as with every silence.
    """
    with as_tenant(tenant_id):
        mine = Payment.objects.filter(
            pk=payment_id, status=PaymentStatus.PENDING, claimed_until=now + CLAIM
        ).select_related("invoice")
        payment = mine.first()
    if payment is None:
        return False
    payment.fell += 1
    kind, times = type(error).__name__, payment.fell
    log.error("a payment's try ended as nobody foresaw", payment=payment.pk, times=times, exc_info=error)
    if times >= MOST_FALLS:
        reason = f"{times} attempts in a row failed as nobody foresaw, the last with {kind}."
        _stick(payment, reason, UNFORESEEN, now)
    else:
        _wait(payment, wait_s(times), f"the attempt failed as nobody foresaw, with {kind}", now, fell=times)
    return True


def due(*, now: datetime) -> list[Hint]:
    """Return a look at every payment whose moment has come: hints that were lost, and silences that are over."""
    with as_sweep():
        waiting = Payment.objects.filter(status=PaymentStatus.PENDING, due_at__lte=now).order_by(
            "due_at", "id"
        )
        found = waiting.values_list("pk", "tenant_id")[:BATCH]
        return [("billing.collect", payment_id, tenant_id) for payment_id, tenant_id in found]


def _claim(payment_id: str, tenant_id: str, now: datetime) -> Payment | None:
    """Take the payment for ourselves for a while; None when it is settled, not due, or another worker's.

    A claim that ran out is one that its worker died with, or was as good as dead.
    """
    free = Q(claimed_until=None) | Q(claimed_until__lt=now)
    with as_tenant(tenant_id):
        mine = Payment.objects.filter(free, pk=payment_id, status=PaymentStatus.PENDING, due_at__lte=now)
        died = Case(When(claimed_until=None, then=F("fell")), default=F("fell") + 1)
        if not mine.update(claimed_until=now + CLAIM, due_at=now + CLAIM, tries=F("tries") + 1, fell=died):
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
    return gateway.charge(charge_of(payment), now=now)


def _wait(payment: Payment, seconds: int, trouble: str, now: datetime, *, fell: int = 0) -> None:
    """Ask again later, with the same key; a little apart from the others that met the same silence."""
    apart = Chance(f"{payment.pk} {payment.tries}").uniform(0, seconds // 2)
    again = now + timedelta(seconds=seconds + int(apart))
    with as_tenant(payment.tenant_id):
        if _mine(payment).update(due_at=again, claimed_until=None, trouble=legible(trouble), fell=fell):
            after_s = (again - now).total_seconds()
            doorbell.ring(
                "billing.collect", payment.pk, tenant_id=payment.tenant_id, now=now, after_s=after_s
            )


def _stick(payment: Payment, reason: str, code: str, now: datetime) -> None:
    """Ask no more until a person says so (opening.pay), and see that people learn of it."""
    stuck = {"status": PaymentStatus.STUCK, "stuck_at": now, "due_at": None, "claimed_until": None}
    reason, code = legible(reason), legible(code)[:60]
    with as_tenant(payment.tenant_id):
        if _mine(payment).update(reason=reason, code=code, trouble="", **stuck):
            log.error("a payment waits for a person", payment=payment.pk, code=code, why=reason)
            record("payment.stick", payment.invoice, actor=BILLING, now=now, payment=payment.pk, code=code)


def _mine(payment: Payment) -> QuerySet[Payment]:
    """Return the row as long as our claim on it stands."""
    return Payment.objects.filter(
        pk=payment.pk, status=PaymentStatus.PENDING, claimed_until=payment.claimed_until
    )


def legible(text: str) -> str:
    """Cut a gateway's words to what a row holds: PostgreSQL keeps no NUL."""
    return text.replace("\0", "")[:LONGEST_REASON]


def _settle(payment: Payment, outcome: Outcome, now: datetime) -> None:
    """Write the outcome, and with it, in the same transaction, that the invoice is paid, and in the books."""
    settled = {"settled_at": now, "due_at": None, "claimed_until": None, "stuck_at": None, "trouble": ""}
    with as_tenant(payment.tenant_id):
        # The invoice first, as whoever opens a payment does: two orders of locks would wait for each other.
        invoice = Invoice.objects.select_for_update().get(pk=payment.invoice_id)
        # An answer counts whoever brings it, though the claim ran out, or the payment got stuck in other hands.
        mine = Payment.objects.filter(pk=payment.pk, status__in=UNSETTLED)
        if isinstance(outcome, Declined):
            reason, code = legible(outcome.reason), legible(outcome.code)[:60]
            if mine.update(status=PaymentStatus.DECLINED, reason=reason, code=code, **settled):
                record("payment.decline", invoice, actor=BILLING, now=now, payment=payment.pk, code=code)
                queue.put("payment-failed", payment.pk, tenant_id=payment.tenant_id, now=now)
        elif mine.update(
            status=PaymentStatus.SUCCEEDED,
            reference=legible(outcome.reference)[:120],
            reason="",
            code="",
            **settled,
        ):
            Invoice.objects.filter(pk=invoice.pk).update(status=InvoiceStatus.PAID, paid_at=now)
            record("invoice.pay", invoice, actor=BILLING, now=now, payment=payment.pk)
            posting.paid([payment.pk], now=now)
            queue.put("invoice-paid", invoice.pk, tenant_id=payment.tenant_id, now=now)
