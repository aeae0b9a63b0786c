"""Asking for the money of a final invoice: a person's request, or the product's own once a day."""

from datetime import datetime

import structlog
from django.db import DatabaseError, transaction
from django.db.models import Count, Exists, F, Max, OuterRef, Q

from billing.domain.collecting import MOST_UNASKED, UNASKED_EVERY, tries_unasked
from billing.models import Invoice, InvoiceStatus, Payment, PaymentStatus
from billing.models.moves import UNSETTLED
from billing.services.disputes import window
from billing.services.moves.moving import BILLING
from billing.services.payments.collecting import PAYMENTS
from billing.services.payments.trail import record
from ports import payments
from ports.payments import Gateway
from tenants.services.actors import Actor
from tenants.services.refusals import Fix, Refused
from tenants.services.walls import as_sweep, as_tenant

log = structlog.get_logger(__name__)
BATCH = 500


class NotPayable(Refused):
    code, status, title = "not-payable", 409, "This invoice cannot be paid now"


@transaction.atomic
def pay(invoice: Invoice, *, actor: Actor, now: datetime) -> Payment:
    """Open the payment of all that is due on an invoice, or have the one that is stuck asked for again.

    A worker collects it. Raises NotPayable.
    """
    invoice = Invoice.objects.select_for_update().get(pk=invoice.pk)
    if stuck := invoice.payments.filter(status=PaymentStatus.STUCK).first():
        return _ask_again(stuck, actor=actor, now=now)
    gateway = _check(invoice)
    return _open(invoice, gateway, actor=actor, now=now)


def open_due(*, now: datetime) -> int:
    """Ask for every final invoice that nobody need be asked about, and settle those of nothing; return how many.

    One that cannot be asked for, whatever the reason, keeps nobody else's waiting.
    """
    opened = 0
    for invoice_id, tenant_id in _due(now):
        try:
            opened += _unasked(invoice_id, tenant_id, now)
        except DatabaseError as error:
            log.error("an invoice was not asked for", invoice=invoice_id, why=str(error).strip())
    return opened


def _due(now: datetime) -> list[tuple[str, str]]:
    """Find them without a lock; what decides is looked at again behind one.

    Nobody is asked for what somebody disputes. What became final while nobody collected here was to be paid by
    transfer, and may have been: it is left to people.
    """
    waiting = Payment.objects.filter(invoice=OuterRef("pk"), status__in=UNSETTLED)
    attempts = {
        "latest": Max("payments__opened_at"),
        "unasked": Count("payments", filter=Q(payments__automatic=True)),
    }
    found = Invoice.objects.filter(~Exists(waiting), status=InvoiceStatus.FINALIZED).annotate(**attempts)
    disputed = window.in_question().filter(invoice=OuterRef("pk"))
    rested = Q(latest=None) | Q(latest__lte=now - UNASKED_EVERY, unasked__lt=MOST_UNASKED)
    nothing = Q(total=F("settled"))
    wanted = Q(rested, ~Exists(disputed), collected=True) | nothing if payments.gateway() else nothing
    with as_sweep():
        return list(found.filter(wanted).order_by("finalized_at").values_list("pk", "tenant_id")[:BATCH])


def _unasked(invoice_id: str, tenant_id: str, now: datetime) -> bool:
    with as_tenant(tenant_id):
        invoice = Invoice.objects.select_for_update().get(pk=invoice_id)
        if invoice.to_pay == 0 and invoice.status == InvoiceStatus.FINALIZED:
            Invoice.objects.filter(pk=invoice.pk).update(status=InvoiceStatus.PAID, paid_at=now)
            record("invoice.pay", invoice, actor=BILLING, now=now)
            return True
        declined = invoice.payments.filter(status=PaymentStatus.DECLINED)
        if not tries_unasked([(each.opened_at, each.automatic) for each in declined], now):
            return False  # a person was faster
        if window.of(invoice):
            return False  # disputed meanwhile: a person may pay it all the same
        try:
            gateway = _check(invoice)
        except NotPayable:  # so they were, or another worker
            return False
        _open(invoice, gateway, actor=BILLING, now=now, automatic=True)
        return True


def _check(invoice: Invoice) -> Gateway:
    """Return who collects a locked invoice, or raise why it cannot be paid."""
    if invoice.status == InvoiceStatus.PAID:
        raise NotPayable(f"Invoice {invoice} is paid.", fix="There is nothing left to do.")
    if invoice.status != InvoiceStatus.FINALIZED:
        raise NotPayable(
            f"This invoice is {invoice.status}; only a final one can be paid.",
            fix="A draft becomes final when its month is over: wait for that.",
        )
    if invoice.to_pay <= 0:
        raise NotPayable(f"Nothing is due on invoice {invoice}.", fix="It is marked as paid by itself, soon.")
    if waits := invoice.payments.filter(status__in=UNSETTLED).first():
        raise NotPayable(
            f"Payment {waits.pk} of invoice {invoice} is under way.",
            fix=Fix("Wait until it is settled.", "GET", f"/api/v1/payments/{waits.pk}"),
        )
    if (gateway := payments.gateway()) is None:
        raise NotPayable(
            "This installation collects no payments.",
            fix=f"Pay by transfer, and write {invoice} and {invoice.pk} on it.",
        )
    return gateway


def _open(
    invoice: Invoice, gateway: Gateway, *, actor: Actor, now: datetime, automatic: bool = False
) -> Payment:
    payment = Payment.objects.create(
        tenant_id=invoice.tenant_id,
        invoice=invoice,
        minor=invoice.to_pay,
        currency=invoice.currency,
        gateway=gateway.name,
        automatic=automatic,
        opened_at=now,
        due_at=now,
    )
    PAYMENTS.record("open", payment, actor=actor, now=now)
    PAYMENTS.ring(payment, now=now)
    return payment


def _ask_again(payment: Payment, *, actor: Actor, now: datetime) -> Payment:
    """Let the same payment go on: it may have taken the money already, so that another could take it twice."""
    if not PAYMENTS.asks_here(payment):
        raise NotPayable(
            f"Payment {payment.pk} was begun through {payment.gateway}, and only that knows what became of it."
            " It is not set here any longer.",
            fix="Ask the operator to set it again; then pay once more.",
        )
    PAYMENTS.anew(payment, now=now)
    PAYMENTS.record("retry", payment, actor=actor, now=now)
    return payment
