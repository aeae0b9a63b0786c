"""Credit notes as documents: credited lines, the reason, and where the money went."""

from collections.abc import Iterable
from zoneinfo import ZoneInfo

from billing.domain.document_formats import DocumentFormat
from billing.domain.documents import (
    ColumnKind,
    Document,
    DocumentColumn,
    DocumentGroup,
    DocumentHeadline,
    DocumentNote,
    DocumentTotal,
    TwoLineCell,
    group_rows,
)
from billing.models import CreditNote, CreditNoteLine
from billing.services.documents.document_parties import (
    invoice_customer,
    invoice_format,
    invoice_supplier,
    layout_labels,
)
from billing.services.documents.invoice_documents import converted_tax_totals, exchange_rate_notes, quantity_cells
from billing.services.documents.line_names import NamedLine, name_lines

COLUMNS: tuple[tuple[str, ColumnKind], ...] = (
    ("#", "n"),
    ("Description", "what"),
    ("Quantity", "num"),
    ("Unit", "when"),
    ("Price", "num"),
    ("Line amount", "num"),
    ("VAT", "num"),
    ("Credited", "num"),
)
UNCHANGED_NOTE = "The invoice and its bundle do not change. Line numbers are those of the invoice."
CreditedNamedLine = tuple[NamedLine, CreditNoteLine]


def credit_note_document(note: CreditNote) -> Document:
    """Return the document of a credit note whose invoice and lines are prefetched.

    Runs in the tenant's row-level security scope.
    """
    invoice, currency, words = note.invoice, note.currency, invoice_format(note.invoice)
    zone = ZoneInfo(invoice.period.time_zone)
    given = {line.line_id: line for line in note.lines.all()}
    credited = [(each, given[each.line.pk]) for each in name_lines(invoice, words) if each.line.pk in given]
    rates = dict(invoice.taxes.values_list("category", "rate_bp"))
    return Document(
        title=words.text("Credit note"),
        number=str(note),
        supplier=invoice_supplier(invoice, words),
        to=words.text("For"),
        customer=invoice_customer(invoice, words),
        facts=(
            (words.text("Issued"), words.day(note.issued_at, zone)),
            (words.text("Invoice"), str(invoice)),
            *(((words.text("Invoice issued"), words.day(invoice.finalized_at, zone)),) if invoice.finalized_at else ()),
            (words.text("Currency"), currency),
        ),
        headline=DocumentHeadline(
            words.amount(note.total, currency),
            words.text("credited of invoice {invoice}", invoice=invoice),
            _describe_effect(note, words),
        ),
        columns=tuple(DocumentColumn(words.text(head), kind) for head, kind in COLUMNS),
        groups=_groups(credited, rates, words, currency),
        sums=(*_tax_totals(note, credited, rates, words), *_effect_totals(note, words)),
        notes=(
            DocumentNote(words.text("Effect on the invoice"), words.text(UNCHANGED_NOTE)),
            *exchange_rate_notes(invoice, note.tax, words),
        ),
        foot=words.text("Credit note {number} · {id} · {tenant}", number=note, id=note.pk, tenant=note.tenant_id),
        reason=note.reason,
        language=words.language,
        labels=layout_labels(words),
    )


def _groups(
    credited: Iterable[CreditedNamedLine], rates: dict[str, int | None], words: DocumentFormat, currency: str
) -> tuple[DocumentGroup, ...]:
    rows = (
        (
            each.project,
            (
                str(each.line.n),
                TwoLineCell(each.title, each.all_terms),
                *quantity_cells(each.quantity, each.line.minor, words, currency),
                words.amount(each.line.minor, currency),
                words.percent(rate) if (rate := rates.get(each.line.tax_category)) is not None else "",
                words.amount(part.minor, currency),
            ),
            part.minor,
        )
        for each, part in credited
    )
    return tuple(
        DocumentGroup(name, words.amount(minor, currency), tuple(cells)) for name, cells, minor in group_rows(rows)
    )


def _tax_totals(
    note: CreditNote, credited: Iterable[CreditedNamedLine], rates: dict[str, int | None], words: DocumentFormat
) -> list[DocumentTotal]:
    """Return the subtotal and the credited tax of each rate; empty without a tax status."""
    if not note.invoice.treatment:
        return []
    sums = dict[int | None, tuple[int, int]]()
    for each, part in credited:
        net, tax = sums.get(rate := rates.get(each.line.tax_category), (0, 0))
        sums[rate] = net + part.minor, tax + part.tax_minor
    found = [DocumentTotal(words.text("Subtotal"), words.amount(note.total - note.tax, note.currency))]
    for rate, (net, tax) in sorted(sums.items(), key=lambda entry: -(entry[0] or 0)):
        if rate is not None:
            shown = words.amount(net, note.currency)
            label = words.text("VAT {rate} of {net}", rate=words.percent(rate), net=shown)
            found.append(DocumentTotal(label, words.amount(tax, note.currency)))
    return [*found, *converted_tax_totals(note.invoice, note.tax, words)]


def _effect_totals(note: CreditNote, words: DocumentFormat) -> list[DocumentTotal]:
    found = [DocumentTotal(words.text("Credited"), words.amount(note.total, note.currency), "strong")]
    for label, minor in (
        ("Deducted from the amount due", note.reduced_due),
        ("Added to your balance", note.to_balance),
        ("Returned to credits", note.to_grants),
    ):
        if minor:
            found.append(DocumentTotal(words.text(label), words.amount(minor, note.currency)))
    return found


def _describe_effect(note: CreditNote, words: DocumentFormat) -> str:
    """Describe the effect: lower amount due, money on the balance, credit on grants."""
    effects = (
        (note.reduced_due, "The amount due is reduced by {amount}."),
        (
            note.to_balance,
            "{amount} was already paid and is added to your balance, which pays your next invoice first.",
        ),
        (note.to_grants, "{amount} was paid by credits and is returned to them."),
    )
    return " ".join(words.text(text, amount=words.amount(minor, note.currency)) for minor, text in effects if minor)
