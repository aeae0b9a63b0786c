"""Reverse a bank receipt: it was wrong, or the bank took the money back.

What it had paid is owed again. The account returns to the status of the last dunning stage, and stages
beyond a reminder keep their distance from now on.
"""

from datetime import datetime

from django.db import transaction

from billing.domain.money import Money
from billing.models import BankEntry, BankEntryStatus, BankReceipt, Invoice
from billing.models.payments import UNSETTLED
from billing.services.funds.budgets.budget_settings import lock_tenant_funds
from billing.services.ledger import ledger_balances, posting
from billing.services.payments.bank_receipts.receipt_assignment import set_payment_state
from billing.services.payments.dunning import overdue_status
from broker.services.leases.lifecycle import eviction
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError
from tenants.services.rls import tenant_scope


class NotReversible(ProblemError):
    code, status, title = "bank-receipt-not-reversible", 409, "The transfer cannot be reversed now"


@transaction.atomic
def reverse_receipt(receipt: BankReceipt, *, why: str, actor: Actor, now: datetime) -> BankReceipt:
    """Reverse all that a receipt did; repeating it changes nothing.

    Raises NotReversible while a card payment of one of its invoices is in progress, after a credit note of one
    returned the money, if the rest of one was written off since, and if what it left on the balance was spent.
    """
    reason = eviction.clean_reason(why)
    with tenant_scope(receipt.tenant_id):
        lock_tenant_funds(receipt.tenant_id)
        paid = set(receipt.parts.values_list("invoice", flat=True))
        rows = Invoice.objects.select_for_update(of=("self",)).select_related("period")
        invoices = {invoice.pk: invoice for invoice in rows.filter(pk__in=paid).order_by("due_at", "pk")}
        receipt = BankReceipt.objects.select_for_update().get(pk=receipt.pk)
        if receipt.reversed_at:
            return receipt
        _check_reversible(receipt, invoices)
        BankReceipt.objects.filter(pk=receipt.pk).update(
            reversed_at=now, reversed_by=actor.label, reversal_reason=reason, waits=False
        )
        receipt.refresh_from_db()
        for part in receipt.parts.all():
            invoices[part.invoice_id].received -= part.minor
        for invoice in invoices.values():
            set_payment_state(invoice, now=now)
            overdue_status.restore_account_status(Tenant.objects.get(pk=invoice.tenant_id), invoice, now=now)
        # A wrong entry of a statement waits for a decision again.
        BankEntry.objects.filter(receipt=receipt.pk, incoming=True, status=BankEntryStatus.BOOKED).update(
            status=BankEntryStatus.OPEN, receipt="", decided_at=None, decided_by=""
        )
        audit.record(
            "bank_receipt.reverse",
            receipt,
            f"{Money(receipt.minor, receipt.currency)} by bank transfer",
            actor=actor,
            now=now,
            amount=receipt.minor,
            currency=receipt.currency,
            reason=reason,
        )
        posting.reverse_bank_receipts([receipt.pk], now=now)
        return receipt


def _check_reversible(receipt: BankReceipt, invoices: dict[str, Invoice]) -> None:
    for invoice in invoices.values():
        if invoice.payments.filter(status__in=UNSETTLED).exists():
            raise NotReversible(
                f"A payment of invoice {invoice} is in progress.", fix="Wait until it is settled, then try again."
            )
        if any(note.to_balance for note in invoice.credit_notes.all()):
            raise NotReversible(
                f"A credit note of invoice {invoice} returned money that this transfer had paid to the balance.",
                fix="Ask the tenant to pay what the balance lacks, and record that transfer.",
            )
    for part in receipt.parts.filter(invoice__write_offs__undone_at=None, invoice__write_offs__isnull=False).distinct():
        written = invoices[part.invoice_id].write_offs.get(undone_at=None)
        if not (part.recovered and part.at >= written.at):
            raise NotReversible(
                f"Invoice {invoices[part.invoice_id]} was written off after this transfer had paid a part of it.",
                fix="Make the invoice due again first, then reverse the transfer and write off all that is due."
                " Reverse later transfers for the invoice before that.",
            )
    kept = receipt.minor - sum(part.minor for part in receipt.parts.all())
    available = ledger_balances.available_balance(receipt.tenant_id, receipt.currency)
    if kept > available:
        raise NotReversible(
            f"{Money(kept - available, receipt.currency)} of the transfer was on the balance and has been spent.",
            fix="Ask the tenant to pay that amount and record the transfer; then reverse this one.",
        )
