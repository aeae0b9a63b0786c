"""Credit notes as documents: credited lines, the reason, and where the money went."""

from zoneinfo import ZoneInfo

from billing.domain.documents import (
    Document,
    DocumentColumn,
    DocumentGroup,
    DocumentHeadline,
    DocumentNote,
    DocumentTotal,
    TwoLineCell,
    format_day,
    group_rows,
)
from billing.domain.money import format_minor
from billing.models import CreditNote
from billing.services.documents.document_parties import invoice_customer, invoice_supplier
from billing.services.documents.line_names import name_lines

COLUMNS = (
    DocumentColumn("#", "n"),
    DocumentColumn("Description", "what"),
    DocumentColumn("Line amount", "num"),
    DocumentColumn("Credited", "num"),
)
UNCHANGED_NOTE = "The invoice and its bundle do not change. Line numbers are those of the invoice."


def credit_note_document(note: CreditNote) -> Document:
    """Return the document of a credit note whose invoice and lines are prefetched.

    Runs in the tenant's row-level security scope.
    """
    invoice, currency = note.invoice, note.currency
    zone = ZoneInfo(invoice.period.time_zone)
    given = {line.line_id: line.minor for line in note.lines.all()}
    rows = (
        (
            each.project,
            (
                str(each.line.n),
                TwoLineCell(each.title, each.all_terms),
                format_minor(each.line.minor, currency),
                format_minor(given[each.line.pk], currency),
            ),
            given[each.line.pk],
        )
        for each in name_lines(invoice)
        if each.line.pk in given
    )
    sums = [DocumentTotal("Credited", format_minor(note.total, currency), "strong")]
    if note.tax:
        sums[:0] = [
            DocumentTotal("Subtotal", format_minor(note.total - note.tax, currency)),
            DocumentTotal("VAT", format_minor(note.tax, currency)),
        ]
    if note.reduced_due:
        sums.append(DocumentTotal("Deducted from the amount due", format_minor(note.reduced_due, currency)))
    if note.to_balance:
        sums.append(DocumentTotal("Added to your balance", format_minor(note.to_balance, currency)))
    if note.to_grants:
        sums.append(DocumentTotal("Returned to credits", format_minor(note.to_grants, currency)))
    return Document(
        title="Credit note",
        number=str(note),
        supplier=invoice_supplier(invoice),
        to="For",
        customer=invoice_customer(invoice),
        facts=(
            ("Issued", format_day(note.issued_at, zone)),
            ("Invoice", str(invoice)),
            *((("Invoice issued", format_day(invoice.finalized_at, zone)),) if invoice.finalized_at else ()),
            ("Currency", currency),
        ),
        headline=DocumentHeadline(
            format_minor(note.total, currency), f"credited of invoice {invoice}", _describe_effect(note)
        ),
        columns=COLUMNS,
        groups=tuple(
            DocumentGroup(name, format_minor(minor, currency), tuple(cells)) for name, cells, minor in group_rows(rows)
        ),
        sums=tuple(sums),
        notes=(DocumentNote("Effect on the invoice", UNCHANGED_NOTE),),
        foot=f"Credit note {note} · {note.pk} · {note.tenant_id}",
        reason=note.reason,
    )


def _describe_effect(note: CreditNote) -> str:
    """Describe the effect: lower amount due, money on the balance, credit on grants."""
    sentences = []
    if note.reduced_due:
        sentences.append(f"The amount due is reduced by {format_minor(note.reduced_due, note.currency)}.")
    if note.to_balance:
        sentences.append(
            f"{format_minor(note.to_balance, note.currency)} was already paid and is added to your balance,"
            " which pays your next invoice first."
        )
    if note.to_grants:
        sentences.append(f"{format_minor(note.to_grants, note.currency)} was paid by credits and is returned to them.")
    return " ".join(sentences)
