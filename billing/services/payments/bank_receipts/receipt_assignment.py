"""Assign money of bank receipts to invoices.

At once, later, or once a card payment is settled.
"""

from collections.abc import Sequence
from datetime import datetime

import structlog
from django.db import DatabaseError, transaction
from django.db.models import Sum

from billing.models import BankReceipt, BankReceiptPart, Invoice, InvoiceStatus
from billing.models.invoices import OPEN_STATUSES
from billing.models.payments import UNSETTLED
from billing.services.funds.budgets.budget_settings import lock_tenant_funds
from billing.services.ledger import ledger_balances, posting
from billing.services.notifications import email_queue
from billing.services.payments import bad_debt_taxes
from billing.services.payments.dunning import overdue_status
from billing.services.payments.payment_audit import record_invoice_event
from tenants.services import audit
from tenants.services.actors import BILLING, Actor
from tenants.services.errors import InvalidValue, ProblemError
from tenants.services.rls import system_scope, tenant_scope

log = structlog.get_logger(__name__)
BATCH_SIZE = 500


class NotAssignable(ProblemError):
    code, status, title = "bank-receipt-not-assignable", 409, "The transfer cannot pay this invoice now"


def assign_received(receipt: BankReceipt, invoices: Sequence[Invoice], *, actor: Actor, now: datetime) -> None:
    """Assign a new receipt to locked invoices, as far as it goes.

    The caller posts it.
    """
    left, waits = receipt.minor, False
    for invoice in invoices:
        if not left:
            break
        if _has_payment_in_progress(invoice):
            waits = True
            continue
        left -= _pay_part(receipt, invoice, left, from_balance=False, actor=actor, now=now)
    if waits and left:
        _set_waits(receipt, True)


@transaction.atomic
def assign_rest(receipt: BankReceipt, invoice: Invoice, *, actor: Actor, now: datetime) -> BankReceipt:
    """Assign what a receipt left on the balance to an invoice.

    As far as both go.

    Raises NotAssignable if nothing is left, due, or if a card payment is in progress.
    """
    with tenant_scope(receipt.tenant_id):
        lock_tenant_funds(receipt.tenant_id)
        invoice = _lock_invoice(invoice)
        receipt = BankReceipt.objects.select_for_update().get(pk=receipt.pk)
        if receipt.reversed_at:
            raise NotAssignable(f"{receipt.pk} was reversed.", fix="Record the transfer again if it was correct.")
        if invoice.tenant_id != receipt.tenant_id or invoice.currency != receipt.currency:
            raise InvalidValue("invoice", "The invoice is not of this tenant.", fix="Select one of its open invoices.")
        if _has_payment_in_progress(invoice):
            raise NotAssignable(
                f"A payment of invoice {invoice} is in progress.", fix="Wait until it is settled, then try again."
            )
        available = assignable_rest(receipt)
        if not available or not _owed(invoice):
            what = f"Nothing is due on invoice {invoice}" if available else "Nothing of the transfer is left"
            raise NotAssignable(f"{what}.", fix="Reload the page to see what is left and what is due.")
        paid = _pay_part(receipt, invoice, available, from_balance=True, actor=actor, now=now)
        audit.record(
            "bank_receipt.assign", receipt, actor=actor, now=now, invoice=str(invoice), amount=paid,
            currency=receipt.currency,
        )  # fmt: skip
        overdue_status.clear_overdue_status(receipt.tenant_id, now=now)
        posting.post_bank_receipts([receipt.pk], now=now)
        return receipt


def assignable_rest(receipt: BankReceipt) -> int:
    """Return what of a receipt is on the balance and still there; minor units."""
    if receipt.reversed_at:
        return 0
    left: int = receipt.minor - receipt.parts.aggregate(paid=Sum("minor", default=0))["paid"]
    return max(min(left, ledger_balances.available_balance(receipt.tenant_id, receipt.currency)), 0)


def assign_waiting_receipts(*, now: datetime) -> int:
    """Assign receipts that waited for a card payment; return how many.

    Its payment is settled now.
    """
    with system_scope():
        found = list(
            BankReceipt.objects.filter(waits=True).order_by("recorded_at").values_list("pk", "tenant_id")[:BATCH_SIZE]
        )
    done = 0
    for receipt_id, tenant_id in found:
        try:
            with tenant_scope(tenant_id), transaction.atomic():
                lock_tenant_funds(tenant_id)
                done += assign_waiting(receipt_id, now=now)
        except DatabaseError as error:
            log.error("bank receipt not assigned", receipt=receipt_id, why=str(error).strip())
    return done


def assign_waiting_for(invoice: Invoice, *, now: datetime) -> None:
    """Assign receipts that waited for the outcome of this invoice's card payment; it is locked."""
    waiting = BankReceipt.objects.filter(tenant=invoice.tenant_id, waits=True, wanted__contains=[invoice.pk])
    for receipt_id in waiting.order_by("recorded_at").values_list("pk", flat=True):
        assign_waiting(receipt_id, now=now)


def assign_waiting(receipt_id: str, *, now: datetime) -> bool:
    """Assign a waiting receipt to the invoices that can take it.

    Returns whether it waits no longer.
    """
    receipt = BankReceipt.objects.get(pk=receipt_id)
    rows = Invoice.objects.select_for_update(of=("self",)).select_related("period")
    found = {invoice.pk: invoice for invoice in rows.filter(pk__in=receipt.wanted).order_by("due_at", "pk")}
    receipt = BankReceipt.objects.select_for_update().get(pk=receipt_id)
    if not receipt.waits:
        return False
    still = False
    for invoice in (found[key] for key in receipt.wanted):
        if _has_payment_in_progress(invoice):
            still = True
        elif _owed(invoice) and (available := assignable_rest(receipt)):
            _pay_part(receipt, invoice, available, from_balance=True, actor=BILLING, now=now)
            posting.post_bank_receipts([receipt.pk], now=now)
    if not still:
        _set_waits(receipt, False)
    return not still


def _pay_part(
    receipt: BankReceipt, invoice: Invoice, most: int, *, from_balance: bool, actor: Actor, now: datetime
) -> int:
    """Pay a locked invoice from a receipt, and return how much."""
    minor = min(most, _owed(invoice))
    if minor <= 0:
        return 0
    written_off = invoice.write_offs.get(undone_at=None) if invoice.status == InvoiceStatus.UNCOLLECTIBLE else None
    BankReceiptPart.objects.create(
        tenant_id=receipt.tenant_id,
        receipt=receipt,
        invoice=invoice,
        minor=minor,
        at=now,
        from_balance=from_balance,
        recovered=written_off is not None,
        recovered_tax=bad_debt_taxes.recovered_tax(written_off, invoice, minor) if written_off else 0,
    )
    before = invoice.status
    invoice.received += minor
    set_payment_state(invoice, now=now)
    if invoice.status == InvoiceStatus.PAID and before != InvoiceStatus.PAID:
        record_invoice_event("invoice.pay", invoice, actor=actor, now=now, bank_receipt=receipt.pk)
        email_queue.enqueue_email("invoice-paid", invoice.pk, tenant_id=invoice.tenant_id, now=now)
    return minor


def set_payment_state(invoice: Invoice, *, now: datetime) -> None:
    """Write the state that follows from what a locked invoice has received."""
    left = invoice.to_pay - invoice.received
    if left == 0:
        invoice.status, invoice.paid_at = InvoiceStatus.PAID, now
    else:
        invoice.paid_at = None
        if invoice.write_offs.filter(undone_at=None).exists():
            invoice.status = InvoiceStatus.UNCOLLECTIBLE
        else:
            invoice.status = InvoiceStatus.PARTIALLY_PAID if invoice.received else InvoiceStatus.FINALIZED
    invoice.save(update_fields=["received", "status", "paid_at"])


def _owed(invoice: Invoice) -> int:
    """Return what an invoice can still take: what is due, or what was written off."""
    if invoice.status == InvoiceStatus.UNCOLLECTIBLE:
        return invoice.to_pay - invoice.received
    return invoice.due if invoice.status in OPEN_STATUSES else 0


def _has_payment_in_progress(invoice: Invoice) -> bool:
    return invoice.payments.filter(status__in=UNSETTLED).exists()


def _lock_invoice(invoice: Invoice) -> Invoice:
    return Invoice.objects.select_for_update(of=("self",)).select_related("period").get(pk=invoice.pk)


def _set_waits(receipt: BankReceipt, waits: bool) -> None:
    BankReceipt.objects.filter(pk=receipt.pk).update(waits=waits)
    receipt.waits = waits
