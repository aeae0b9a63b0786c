"""Open payments of final invoices: on request, or automatically once a day."""

from datetime import datetime

import structlog
from django.db import DatabaseError, transaction
from django.db.models import Count, Exists, Max, OuterRef, Q

from billing.domain.payment_retries import AUTO_RETRY_INTERVAL, MAX_AUTO_RETRIES, is_auto_retry_due
from billing.models import Invoice, InvoiceStatus, Payment, PaymentStatus
from billing.models.invoices import OPEN_AMOUNT, OPEN_STATUSES
from billing.models.payments import UNSETTLED
from billing.services.payments import disputed_amounts
from billing.services.payments.payment_audit import record_invoice_event
from billing.services.payments.payment_collection import PAYMENTS
from ports import payments
from ports.payments import PaymentGateway
from tenants.services.actors import BILLING, Actor
from tenants.services.errors import Fix, ProblemError
from tenants.services.rls import system_scope, tenant_scope

log = structlog.get_logger(__name__)
BATCH_SIZE = 500


class NotPayable(ProblemError):
    code, status, title = "not-payable", 409, "The invoice cannot be paid now"


@transaction.atomic
def open_payment(invoice: Invoice, *, actor: Actor, now: datetime) -> Payment:
    """Open a payment of all that is due, or retry the stuck one.

    A worker collects it. Raises NotPayable.
    """
    invoice = Invoice.objects.select_for_update().get(pk=invoice.pk)
    if stuck := invoice.payments.filter(status=PaymentStatus.STUCK).first():
        return _retry_payment(stuck, actor=actor, now=now)
    gateway = _check_payable(invoice)
    return _create_payment(invoice, gateway, actor=actor, now=now)


def open_due_payments(*, now: datetime) -> int:
    """Open payments of all invoices due for automatic collection; return how many.

    Invoices of zero are marked paid. One that fails, for whatever reason, does not block the others.
    """
    opened = 0
    for invoice_id, tenant_id in _due_invoices(now):
        try:
            opened += _open_automatic(invoice_id, tenant_id, now)
        except DatabaseError as error:
            log.error("invoice not collected", invoice=invoice_id, why=str(error).strip())
    return opened


def _due_invoices(now: datetime) -> list[tuple[str, str]]:
    """Find the invoices without a lock; the decision is repeated behind one.

    Disputed invoices are left out. An invoice that became final while no gateway was set was to be paid
    by transfer, and may have been: it is left to people.
    """
    waiting = Payment.objects.filter(invoice=OuterRef("pk"), status__in=UNSETTLED)
    attempts = {"latest": Max("payments__opened_at"), "unasked": Count("payments", filter=Q(payments__automatic=True))}
    found = Invoice.objects.filter(~Exists(waiting), status__in=OPEN_STATUSES).annotate(
        **attempts, open_minor=OPEN_AMOUNT
    )
    disputed = disputed_amounts.open_disputes().filter(invoice=OuterRef("pk"))
    rested = Q(latest=None) | Q(latest__lte=now - AUTO_RETRY_INTERVAL, unasked__lt=MAX_AUTO_RETRIES)
    nothing = Q(open_minor=0)
    partly_by_card = Payment.objects.filter(invoice=OuterRef("pk"), status=PaymentStatus.SUCCEEDED)
    wanted = Q(rested, ~Exists(disputed), ~Exists(partly_by_card), collected=True) | nothing
    wanted = wanted if payments.gateway() else nothing
    with system_scope():
        return list(found.filter(wanted).order_by("finalized_at").values_list("pk", "tenant_id")[:BATCH_SIZE])


def _open_automatic(invoice_id: str, tenant_id: str, now: datetime) -> bool:
    with tenant_scope(tenant_id):
        invoice = Invoice.objects.select_for_update().get(pk=invoice_id)
        if invoice.status in OPEN_STATUSES and invoice.due == 0:
            Invoice.objects.filter(pk=invoice.pk).update(status=InvoiceStatus.PAID, paid_at=now)
            record_invoice_event("invoice.pay", invoice, actor=BILLING, now=now)
            return True
        declined = invoice.payments.filter(status=PaymentStatus.DECLINED)
        if not is_auto_retry_due([(each.opened_at, each.automatic) for each in declined], now):
            return False  # a person retried it first
        if disputed_amounts.open_disputes_of(invoice):
            return False  # disputed meanwhile; a person may still pay it
        try:
            gateway = _check_payable(invoice)
        except NotPayable:  # a person or another worker was faster
            return False
        _create_payment(invoice, gateway, actor=BILLING, now=now, automatic=True)
        return True


def _check_payable(invoice: Invoice) -> PaymentGateway:
    """Return the gateway for a locked invoice, or raise NotPayable."""
    if invoice.status == InvoiceStatus.PAID:
        raise NotPayable(f"Invoice {invoice} is paid.", fix="No action is needed.")
    if invoice.status not in OPEN_STATUSES:
        raise NotPayable(
            f"This invoice is {invoice.status}; only final invoices can be paid.",
            fix="Wait until the month is closed. The draft then becomes final.",
        )
    if invoice.due <= 0:
        raise NotPayable(f"Nothing is due on invoice {invoice}.", fix="The invoice is marked as paid automatically.")
    if waits := invoice.payments.filter(status__in=UNSETTLED).first():
        raise NotPayable(
            f"Payment {waits.pk} of invoice {invoice} is in progress.",
            fix=Fix("Wait until it is settled.", "GET", f"/api/v1/payments/{waits.pk}"),
        )
    if (gateway := payments.gateway()) is None:
        raise NotPayable(
            "This installation does not collect payments.",
            fix=f"Pay by bank transfer with the reference {invoice.payment_reference}.",
        )
    if invoice.payments.filter(status=PaymentStatus.SUCCEEDED).exists():
        raise NotPayable(
            f"A payment already collected its part of invoice {invoice}.",
            fix=f"Pay the rest by bank transfer with the reference {invoice.payment_reference}.",
        )
    return gateway


def _create_payment(
    invoice: Invoice, gateway: PaymentGateway, *, actor: Actor, now: datetime, automatic: bool = False
) -> Payment:
    return PAYMENTS.open(
        actor=actor,
        now=now,
        tenant_id=invoice.tenant_id,
        invoice=invoice,
        minor=invoice.due,
        currency=invoice.currency,
        gateway=gateway.name,
        automatic=automatic,
    )


def _retry_payment(payment: Payment, *, actor: Actor, now: datetime) -> Payment:
    """Retry the same payment.

    It may have taken the money already, so that another one could take it twice.
    """
    if not PAYMENTS.uses_current_gateway(payment):
        raise NotPayable(
            f"Payment {payment.pk} was started through {payment.gateway}, and only this gateway knows its result."
            " It is no longer configured.",
            fix="Ask the operator to configure it again, then pay again.",
        )
    PAYMENTS.retry(payment, actor=actor, now=now)
    return payment
