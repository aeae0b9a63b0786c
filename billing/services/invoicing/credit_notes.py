"""Credit notes: give back what a final invoice charged wrongly, with a stated reason.

The invoice never changes. A credit note first reduces what is still due; what was already paid goes
to the tenant's balance, which pays its next final invoice; what grants paid returns to the grants.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from django.db import connection, transaction
from django.db.models import Sum

from billing.domain.credit_notes import (
    CreditTooLarge,
    LineCreditLimit,
    check_credit,
    credit_applied_to_due,
    remaining_amounts,
)
from billing.domain.money import Money
from billing.models import CreditNote, CreditNoteLine, Invoice, InvoiceStatus
from billing.models.invoices import OPEN_STATUSES
from billing.models.payments import UNSETTLED
from billing.services.funds.grants import credit_returns
from billing.services.invoicing import finalization
from billing.services.ledger import posting
from billing.services.notifications import email_queue
from billing.services.payments.payment_audit import record_invoice_event
from broker.services.leases.lifecycle import eviction
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.errors import InvalidValue, ProblemError
from tenants.services.rls import tenant_scope

CHECK_SUMS_NOW = (
    "SET CONSTRAINTS sum_of_its_lines, sum_of_its_returns IMMEDIATE;"
    " SET CONSTRAINTS sum_of_its_lines, sum_of_its_returns DEFERRED"
)
CREDITABLE = (*OPEN_STATUSES, InvoiceStatus.PAID)


class NotCreditable(ProblemError):
    code, status, title = "not-creditable", 409, "The invoice cannot be credited now"


def creditable_lines(invoice: Invoice) -> list[LineCreditLimit]:
    """Return what each line and its tax came to and was credited; one query."""
    lines = invoice.lines.annotate(
        credited=Sum("credits__minor", default=0), back=Sum("credits__tax_minor", default=0)
    ).order_by("n")
    return [LineCreditLimit(*row) for row in lines.values_list("n", "minor", "credited", "tax_minor", "back")]


@transaction.atomic
def issue_credit_note(
    invoice: Invoice,
    *,
    wanted: Mapping[int, int] | None,
    seen: int,
    why: str,
    actor: Actor,
    now: datetime,
    correction: str = "",
) -> CreditNote:
    """Credit these amounts by line number, plus their tax, or the whole remaining invoice.

    `seen` is how much was already credited when the caller looked, so that the same request twice, or
    two people at once, give back once. Raises InvalidValue for amounts that are not there or without a
    reason; NotCreditable for a draft, a void invoice, one with a pending payment, or if more was
    credited than was seen.
    """
    reason = eviction.clean_reason(why)
    with tenant_scope(invoice.tenant_id):
        # Lock the invoice first, as opening and settling a payment do.
        invoice = Invoice.objects.select_for_update().get(pk=invoice.pk)
        _check_creditable(invoice)
        lines = creditable_lines(invoice)
        _check_seen(invoice, lines, seen)
        amounts = dict(remaining_amounts(lines) if wanted is None else wanted)
        try:
            check_credit(lines, amounts, invoice.currency)
        except CreditTooLarge as much:
            raise InvalidValue("lines", str(much), fix="Check the remaining amount of each line.") from much
        parts = {line.n: (amounts[line.n], line.tax_with(amounts[line.n])) for line in lines if line.n in amounts}
        return _write_credit_note(invoice, parts, reason, actor, now, correction)


def _check_creditable(invoice: Invoice) -> None:
    if invoice.status not in CREDITABLE:
        raise NotCreditable(f"This invoice is {invoice.status}.", fix="Only a final one, paid or not, can be credited.")
    if waits := invoice.payments.filter(status__in=UNSETTLED).first():
        raise NotCreditable(
            f"Payment {waits.pk} of invoice {invoice} is in progress.",
            fix="Wait until the payment settles. The credit then goes to the tenant's balance.",
        )


def _check_seen(invoice: Invoice, lines: Iterable[LineCreditLimit], seen: int) -> None:
    if (credited := sum(line.credited for line in lines)) != seen:
        raise NotCreditable(
            f"{Money(credited, invoice.currency)} of this invoice has been credited,"
            f" not {Money(seen, invoice.currency)} as shown on your page.",
            fix="Check its credit notes: yours may be among them. If not, try again.",
        )


def _write_credit_note(
    invoice: Invoice, parts: Mapping[int, tuple[int, int]], reason: str, actor: Actor, now: datetime, correction: str
) -> CreditNote:
    """Write the credit note: amounts with their tax, by line number."""
    tax = sum(tax for _, tax in parts.values())
    total = tax + sum(minor for minor, _ in parts.values())
    due, series = invoice.due, f"CN-{now.astimezone(UTC):%Y-%m}"
    off = credit_applied_to_due(total, due=due)
    note = CreditNote.objects.create(
        tenant_id=invoice.tenant_id,
        invoice=invoice,
        series=series,
        number=finalization.take_numbers(series),
        currency=invoice.currency,
        total=total,
        tax=tax,
        reduced_due=off,
        to_grants=credit_returns.amount_to_grants(invoice, total - off),
        reason=reason,
        correction_id=correction,
        issued_at=now,
        issued_by=actor.id,
    )
    ids = dict(invoice.lines.filter(n__in=parts).values_list("n", "pk"))
    CreditNoteLine.objects.bulk_create(
        CreditNoteLine(tenant_id=invoice.tenant_id, credit_note=note, line_id=ids[n], minor=minor, tax_minor=tax)
        for n, (minor, tax) in sorted(parts.items())
    )
    credit_returns.return_to_grants(note)
    with connection.cursor() as cursor:  # at commit the RLS scope is gone and the deferred checks would see no rows
        cursor.execute(CHECK_SUMS_NOW)
    if note.reduced_due:
        invoice.settled += note.reduced_due
        if note.reduced_due == due:
            invoice.status, invoice.paid_at = InvoiceStatus.PAID, now
        invoice.save(update_fields=["settled", "status", "paid_at"])
    audit.record(
        "invoice.credit",
        invoice,
        actor=actor,
        now=now,
        credit_note=str(note),
        amount=note.total,
        **({"to_balance": note.to_balance} if note.to_balance else {}),
        **({"to_grants": note.to_grants} if note.to_grants else {}),
        currency=note.currency,
        reason=reason,
        **({"correction": correction} if correction else {}),
    )
    if invoice.status == InvoiceStatus.PAID and note.reduced_due:
        record_invoice_event("invoice.pay", invoice, actor=actor, now=now)
    posting.post_credit_notes([note.pk], now=now)
    email_queue.enqueue_email("credit-note", note.pk, tenant_id=note.tenant_id, now=now)
    return note
