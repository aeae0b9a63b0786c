"""Giving back what a final invoice charged and should not have: a credit note, for a reason that its tenant reads.

The invoice never changes. What of it is still to be paid becomes less; what was paid already goes to the tenant's
balance, from which the next invoice that becomes final is settled first; and what grants paid goes back to them.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from django.db import connection, transaction
from django.db.models import Sum

from billing.domain.crediting import Left, TooMuch, everything, judge, off_due
from billing.domain.money import Money
from billing.models import CreditNote, CreditNoteLine, Invoice, InvoiceStatus
from billing.models.moves import UNSETTLED
from billing.services import numbering
from billing.services.grants import returning
from billing.services.ledger import posting
from billing.services.payments.trail import record
from billing.services.post import queue
from broker.services.leases import evicting
from tenants.services import audit
from tenants.services.actors import Actor
from tenants.services.refusals import Invalid, Refused
from tenants.services.walls import as_tenant

IN_FULL = (
    "SET CONSTRAINTS sum_of_its_lines, sum_of_its_returns IMMEDIATE;"
    " SET CONSTRAINTS sum_of_its_lines, sum_of_its_returns DEFERRED"
)
CREDITABLE = (InvoiceStatus.FINALIZED, InvoiceStatus.PAID)


class NotCreditable(Refused):
    code, status, title = "not-creditable", 409, "Nothing can be given back of this invoice now"


def left(invoice: Invoice) -> list[Left]:
    """Return what each line and its tax came to and what of them was given back, by number; one query."""
    lines = invoice.lines.annotate(
        credited=Sum("credits__minor", default=0), back=Sum("credits__tax_minor", default=0)
    ).order_by("n")
    return [Left(*row) for row in lines.values_list("n", "minor", "credited", "tax_minor", "back")]


@transaction.atomic
def credit(
    invoice: Invoice,
    *,
    wanted: Mapping[int, int] | None,
    seen: int,
    why: str,
    actor: Actor,
    now: datetime,
    correction: str = "",
) -> CreditNote:
    """Give back these minor units of these lines, by number, with the tax on them, or all that is left of the invoice.

    `seen` is how much of it was given back already when whoever asks looked, so that the same request twice, or two
    people at once, give back once. Raises Invalid for amounts that are not there and without a reason, NotCreditable
    for a draft, a void invoice, one whose payment is under way, and where more was given back than was seen.
    """
    reason = evicting.reason(why)
    with as_tenant(invoice.tenant_id):
        # The invoice first, as whoever opens or settles a payment does.
        invoice = Invoice.objects.select_for_update().get(pk=invoice.pk)
        _check(invoice)
        lines = left(invoice)
        _check_seen(invoice, lines, seen)
        amounts = dict(everything(lines) if wanted is None else wanted)
        try:
            judge(lines, amounts, invoice.currency)
        except TooMuch as much:
            raise Invalid("lines", str(much), fix="Look at what is left of each line.") from much
        parts = {
            line.n: (amounts[line.n], line.tax_with(amounts[line.n])) for line in lines if line.n in amounts
        }
        return _issue(invoice, parts, reason, actor, now, correction)


def _check(invoice: Invoice) -> None:
    if invoice.status not in CREDITABLE:
        raise NotCreditable(
            f"This invoice is {invoice.status}.", fix="Only a final one, paid or not, can be credited."
        )
    if waits := invoice.payments.filter(status__in=UNSETTLED).first():
        raise NotCreditable(
            f"Payment {waits.pk} of invoice {invoice} is under way; it may have taken all of it.",
            fix="Wait until it is settled; what was paid then goes to the tenant's balance.",
        )


def _check_seen(invoice: Invoice, lines: Iterable[Left], seen: int) -> None:
    if (credited := sum(line.credited for line in lines)) != seen:
        raise NotCreditable(
            f"Of this invoice {Money(credited, invoice.currency)} was given back by now,"
            f" not {Money(seen, invoice.currency)} as when you looked.",
            fix="Look at its credit notes: yours may be among them. If not, ask once more.",
        )


def _issue(
    invoice: Invoice,
    parts: Mapping[int, tuple[int, int]],
    reason: str,
    actor: Actor,
    now: datetime,
    correction: str,
) -> CreditNote:
    """Write the note of these amounts, each with its tax, by number of line."""
    tax = sum(tax for _, tax in parts.values())
    total = tax + sum(minor for minor, _ in parts.values())
    due, series = invoice.due, f"CN-{now.astimezone(UTC):%Y-%m}"
    off = off_due(total, due=due)
    note = CreditNote.objects.create(
        tenant_id=invoice.tenant_id,
        invoice=invoice,
        series=series,
        number=numbering.next_of(series),
        currency=invoice.currency,
        total=total,
        tax=tax,
        off_due=off,
        to_grants=returning.part_of_grants(invoice, total - off),
        reason=reason,
        correction_id=correction,
        issued_at=now,
        issued_by=actor.id,
    )
    ids = dict(invoice.lines.filter(n__in=parts).values_list("n", "pk"))
    CreditNoteLine.objects.bulk_create(
        CreditNoteLine(
            tenant_id=invoice.tenant_id, credit_note=note, line_id=ids[n], minor=minor, tax_minor=tax
        )
        for n, (minor, tax) in sorted(parts.items())
    )
    returning.give_back(note)
    with (
        connection.cursor() as cursor
    ):  # at the transaction's end nothing of the tenant's would be seen any longer
        cursor.execute(IN_FULL)
    if note.off_due:
        invoice.settled += note.off_due
        if note.off_due == due:
            invoice.status, invoice.paid_at = InvoiceStatus.PAID, now
        invoice.save(update_fields=["settled", "status", "paid_at"])
    audit.record(
        "invoice.credit",
        actor=actor,
        now=now,
        tenant_id=invoice.tenant_id,
        subject_id=invoice.pk,
        subject_label=str(invoice),
        credit_note=str(note),
        amount=note.total,
        **({"to_balance": note.to_balance} if note.to_balance else {}),
        **({"to_grants": note.to_grants} if note.to_grants else {}),
        currency=note.currency,
        reason=reason,
        **({"correction": correction} if correction else {}),
    )
    if invoice.status == InvoiceStatus.PAID and note.off_due:
        record("invoice.pay", invoice, actor=actor, now=now)
    posting.credited([note.pk], now=now)
    queue.put("credit-note", note.pk, tenant_id=note.tenant_id, now=now)
    return note
