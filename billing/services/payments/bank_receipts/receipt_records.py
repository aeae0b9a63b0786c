"""Record money that came in by bank transfer.

It pays invoices, and the rest is on the balance.

Recording never fails because an invoice cannot take the money: it did come in. Where a card payment of
the invoice is in progress, the money waits on the balance until that is settled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db import transaction

from billing.domain.money import MAX_MINOR, Money
from billing.models import BankReceipt, Invoice
from billing.models.bank_receipts import MAX_PAYER_LENGTH, MAX_REFERENCE_LENGTH
from billing.models.invoices import OPEN_STATUSES
from billing.services.funds.budgets.budget_settings import lock_tenant_funds
from billing.services.ledger import posting
from billing.services.payments.bank_receipts import receipt_assignment
from billing.services.payments.dunning import overdue_status
from tenants.models import Tenant
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ProblemError
from tenants.services.rls import tenant_scope

MAX_INVOICES = 50  # that one transfer can name


class ReceiptKeyReused(ProblemError):
    code, status, title = "bank-receipt-key-reuse", 409, "This transfer was recorded with other details"


class ReceiptUse(StrEnum):
    """What a transfer pays."""

    INVOICES = "invoices"  # those it names, in order
    OLDEST = "oldest"  # the open invoices, the one due first first
    BALANCE = "balance"  # none: it stays on the balance


@dataclass(frozen=True, slots=True)
class ReceiptTerms:
    """A transfer as a person or a bank statement describes it."""

    minor: int
    currency: str
    received_on: date
    reference: str = ""
    payer: str = ""
    payer_account: str = ""
    pays: ReceiptUse = ReceiptUse.OLDEST
    invoices: tuple[str, ...] = ()


@transaction.atomic
def record_receipt(tenant: Tenant, terms: ReceiptTerms, *, idem: str, actor: Actor, now: datetime) -> BankReceipt:
    """Record a transfer, or return the one recorded under this key.

    Raises InvalidValue for an amount of zero, a day in the future, or an invoice that is not the tenant's or not
    final; ReceiptKeyReused if the key stands for another transfer.
    """
    _check_terms(terms, now)
    with tenant_scope(tenant.pk):
        lock_tenant_funds(tenant.pk)
        fields: dict[str, Any] = {
            "currency": terms.currency,
            "minor": terms.minor,
            "received_on": terms.received_on,
            "reference": _one_line(terms.reference, MAX_REFERENCE_LENGTH),
            "payer": _one_line(terms.payer, MAX_PAYER_LENGTH),
            "payer_account": terms.payer_account[:40],
        }
        if before := BankReceipt.objects.filter(tenant=tenant, idem=idem).first():
            if any(getattr(before, name) != value for name, value in fields.items()):
                raise ReceiptKeyReused(
                    f"{before.pk} of {Money(before.minor, before.currency)} was recorded with this key.",
                    fix="Check the tenant's bank transfers, and use a new key for another transfer.",
                )
            return before
        wanted = _wanted_invoices(tenant, terms)
        receipt = BankReceipt.objects.create(
            tenant=tenant,
            wanted=[invoice.pk for invoice in wanted],
            idem=idem,
            recorded_at=now,
            recorded_by=actor.label,
            **fields,
        )
        receipt_assignment.assign_received(receipt, wanted, actor=actor, now=now)
        audit.record(
            "bank_receipt.record",
            receipt,
            f"{Money(receipt.minor, receipt.currency)} by bank transfer",
            actor=actor,
            now=now,
            amount=receipt.minor,
            currency=receipt.currency,
            received_on=receipt.received_on.isoformat(),
            reference=receipt.reference,
            **({"invoices": ", ".join(str(invoice) for invoice in wanted)} if wanted else {}),
        )
        overdue_status.clear_overdue_status(tenant.pk, now=now)
        posting.post_bank_receipts([receipt.pk], now=now)
        return receipt


def _check_terms(terms: ReceiptTerms, now: datetime) -> None:
    if not 0 < terms.minor <= MAX_MINOR:
        raise InvalidValue("amount", "The amount must be above zero.", fix="Enter the amount that came in.")
    if terms.received_on > now.date() + timedelta(days=1):
        raise InvalidValue("received_on", "The day is in the future.", fix="Enter the day of the bank statement.")
    if (terms.pays is ReceiptUse.INVOICES) != bool(terms.invoices) or len(terms.invoices) > MAX_INVOICES:
        raise InvalidValue(
            "invoices",
            f"A transfer for invoices names 1 to {MAX_INVOICES} of them; any other names none.",
            fix="Select the invoices that it pays, or choose the oldest open invoices or the balance.",
        )


def _wanted_invoices(tenant: Tenant, terms: ReceiptTerms) -> Sequence[Invoice]:
    """Return the invoices to pay, in order and locked.

    Raises InvalidValue for one that cannot be paid.
    """
    rows = Invoice.objects.select_for_update(of=("self",)).select_related("period").filter(tenant=tenant)
    if terms.pays is ReceiptUse.BALANCE:
        _check_currency(terms.currency, tenant.currency)
        return []
    if terms.pays is ReceiptUse.OLDEST:
        open_ = list(rows.filter(status__in=OPEN_STATUSES, currency=terms.currency).order_by("due_at", "pk"))
        if not open_:
            _check_currency(terms.currency, tenant.currency)
        return open_
    found = {invoice.pk: invoice for invoice in rows.filter(pk__in=terms.invoices).order_by("due_at", "pk")}
    for key in terms.invoices:
        invoice = found.get(key)
        if invoice is None or invoice.number is None:
            raise InvalidValue("invoices", f"{key} is no final invoice of this tenant.", fix="Select final invoices.")
        _check_currency(terms.currency, invoice.currency)
    return [found[key] for key in dict.fromkeys(terms.invoices)]


def _check_currency(currency: str, expected: str) -> None:
    if currency != expected:
        raise InvalidValue(
            "currency",
            f"The transfer is in {currency[:10]}, but the tenant is billed in {expected}.",
            fix="Record what your bank credited after exchange, in the currency of the invoices.",
        )


def _one_line(text: str, length: int) -> str:
    return " ".join(text.replace("\0", "").split())[:length]
