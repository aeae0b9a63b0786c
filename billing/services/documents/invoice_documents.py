"""Invoices as documents: as of finalization, or a draft's current state.

Later events of a final invoice (payments, credit notes) have documents of their own and change nothing
here.
"""

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
from billing.domain.tax import TREATMENT_TEXTS, TaxTreatment
from billing.models import BalanceDraw, GrantDraw, Invoice, InvoiceStatus
from billing.services.documents import invoice_notes
from billing.services.documents.document_parties import (
    invoice_customer,
    invoice_format,
    invoice_order_number,
    invoice_supplier,
    layout_labels,
)
from billing.services.documents.invoice_bundles import bundle_file_name
from billing.services.documents.line_names import LineQuantity, NamedLine, name_lines
from billing.services.payments.disputed_amounts import last_day_before
from billing.services.tax import exchange_rates

COLUMNS: tuple[tuple[str, ColumnKind], ...] = (
    ("#", "n"),
    ("Description", "what"),
    ("Quantity", "num"),
    ("Unit", "when"),
    ("Price", "num"),
    ("Amount", "num"),
)
# Line amounts are before tax, which is computed per category.
LINE_RULE = (
    "Line amount = active seconds × slices × price per hour ÷ 3,600, summed over all leases of the line and rounded"
    " once (half away from zero). Queueing, starting and releasing are free."
)
MONTH_RULE = (
    "Price tiers and discounts reduce the exact amount of a line before rounding:"
    " tiers first, then percentages in the order they were granted, then amounts. The bundle lists them."
)
CHECK_NOTE = (
    "The invoice's bundle contains the state history of every lease and all prices. With it, verify.py recalculates"
    " every amount above on your own computer. Download both from the invoice's page."
)

DISPUTE_NOTE = (
    "You can dispute any line on the invoice's page until the end of {day}. Disputed amounts are not collected until"
    " the dispute is resolved."
)


def invoice_document(invoice: Invoice) -> Document:
    """Return the document of an invoice whose period is prefetched.

    Runs in the tenant's row-level security scope.
    """
    words, zone, currency = invoice_format(invoice), ZoneInfo(invoice.period.time_zone), invoice.currency
    granted = sum(GrantDraw.objects.filter(invoice=invoice).values_list("minor", flat=True))
    drawn = sum(BalanceDraw.objects.filter(invoice=invoice).values_list("minor", flat=True))
    final = invoice.number is not None
    number = str(invoice) if final else words.text("{month}, not final", month=invoice.period.label)
    sums = [
        *tax_totals(invoice, words),
        DocumentTotal(words.text("Total"), words.amount(invoice.total, currency), "strong"),
    ]
    if granted:
        sums.append(DocumentTotal(words.text("Paid by credits"), words.amount(-granted, currency)))
    if drawn:
        sums.append(DocumentTotal(words.text("Paid from your balance"), words.amount(-drawn, currency)))
    if granted or drawn:
        due = words.amount(invoice.total - granted - drawn, currency)
        sums.append(DocumentTotal(words.text("Due"), due, "strong"))
    lines = name_lines(invoice, words)
    return Document(
        title=words.text("Cost report" if invoice.status == InvoiceStatus.REPORTED else "Invoice"),
        number=number,
        supplier=invoice_supplier(invoice, words),
        to=words.text("Bill to"),
        customer=invoice_customer(invoice, words),
        facts=_facts(invoice, words, zone),
        headline=_headline(invoice, words, granted=granted, drawn=drawn),
        columns=tuple(DocumentColumn(words.text(head), kind) for head, kind in COLUMNS),
        groups=_groups(lines, words, currency),
        sums=tuple(sums),
        notes=(
            *_treatment_notes(invoice, words),
            *exchange_rate_notes(invoice, invoice.tax, words),
            DocumentNote(words.text("How amounts are calculated"), words.text(LINE_RULE)),
            *([DocumentNote(words.text("Discounts"), words.text(MONTH_RULE))] if _has_reductions(lines) else []),
            DocumentNote(
                words.text("Verify this invoice"),
                words.text(CHECK_NOTE),
                f"python verify.py {bundle_file_name(invoice)}",
            ),
            *_dispute_notes(invoice, words, zone),
            *invoice_notes.state_notes(invoice, words),
        ),
        foot=words.text("Invoice {number} · {id} · {tenant}", number=number, id=invoice.pk, tenant=invoice.tenant_id),
        draft=not final,
        language=words.language,
        labels=layout_labels(words),
    )


def _facts(invoice: Invoice, words: DocumentFormat, zone: ZoneInfo) -> tuple[tuple[str, str], ...]:
    span, issued = invoice.period.span, invoice.finalized_at
    facts = [("Issued", words.day(issued, zone)) if issued else ("As of", words.day(invoice.refreshed_at, zone))]
    if invoice.due_at:
        facts.append(("Due", words.day(invoice.due_at, zone)))
    facts += [
        ("Period", words.day_range(span.lower, span.upper, zone)),
        ("Time zone", invoice.period.time_zone),
        ("Currency", invoice.currency),
    ]
    if order := invoice_order_number(invoice):
        facts.append(("Your order", order))
    return tuple((words.text(name), value) for name, value in facts)


def tax_totals(invoice: Invoice, words: DocumentFormat) -> list[DocumentTotal]:
    """Return the subtotal and the tax per category; empty if no supplier is configured."""
    if not invoice.treatment:
        return []
    found = [DocumentTotal(words.text("Subtotal"), words.amount(invoice.subtotal, invoice.currency))]
    for each in invoice.taxes.order_by("-rate_bp", "category"):
        net = words.amount(each.net, invoice.currency)
        label = (
            words.text("VAT {rate} of {net}", rate=words.percent(each.rate_bp), net=net)
            if each.rate_bp is not None
            else words.text("VAT of {net}, rate unknown", net=net)
        )
        found.append(DocumentTotal(label, words.amount(each.tax, invoice.currency)))
    return [*found, *converted_tax_totals(invoice, invoice.tax, words)]


def converted_tax_totals(invoice: Invoice, tax: int, words: DocumentFormat) -> list[DocumentTotal]:
    """Return the tax in the supplier's currency, if an invoice is in another one."""
    found = exchange_rates.converted_tax(invoice, tax) if tax else None
    if found is None:
        return []
    own = found.rate.own
    return [DocumentTotal(words.text("VAT in {currency}", currency=own), words.amount(found.minor, own))]


def exchange_rate_notes(invoice: Invoice, tax: int, words: DocumentFormat) -> list[DocumentNote]:
    """Return by which rate the tax was converted."""
    found = exchange_rates.converted_tax(invoice, tax) if tax else None
    if found is None:
        return []
    rate = words.decimal(found.rate.rate, exchange_rates.RATE_PLACES)
    text = words.text(
        "Converted at 1 {currency} = {rate} {own} ({source}, {day}).",
        currency=found.rate.currency,
        rate=rate,
        own=found.rate.own,
        source=found.rate.source,
        day=words.calendar_day(found.rate.day),
    )
    return [DocumentNote(words.text("VAT in {currency}", currency=found.rate.own), text)]


def _treatment_notes(invoice: Invoice, words: DocumentFormat) -> list[DocumentNote]:
    reason = TREATMENT_TEXTS[TaxTreatment(invoice.treatment)]
    return [DocumentNote(words.text("VAT"), words.text(reason))] if reason else []


def _dispute_notes(invoice: Invoice, words: DocumentFormat, zone: ZoneInfo) -> list[DocumentNote]:
    if invoice.disputable_until is None:
        return []
    last = words.calendar_day(last_day_before(invoice.disputable_until, zone))
    return [DocumentNote(words.text("Dispute a charge"), words.text(DISPUTE_NOTE, day=last))]


def _headline(invoice: Invoice, words: DocumentFormat, *, granted: int, drawn: int) -> DocumentHeadline:
    currency = invoice.currency
    if invoice.number is None:
        more = words.text("A draft cannot be paid. It changes until its month is closed.")
        return DocumentHeadline(words.amount(invoice.total, currency), words.text("so far"), more)
    if invoice.status == InvoiceStatus.REPORTED:
        more = words.text("No payment is due.")
        return DocumentHeadline(words.amount(invoice.total, currency), words.text("for information"), more)
    due, parts = invoice.total - granted - drawn, _describe_settled(invoice, words, granted, drawn)
    if not due:
        return DocumentHeadline(words.amount(0, currency), words.text("no amount due"), " ".join(parts))
    zone = ZoneInfo(invoice.period.time_zone)
    by = words.text("due by {day}", day=words.day(invoice.due_at, zone)) if invoice.due_at else words.text("due")
    how = (
        words.text("It is collected automatically.")
        if invoice.collected
        else words.text("Pay by bank transfer with the reference {number}.", number=invoice)
    )
    return DocumentHeadline(words.amount(due, currency), by, " ".join([*parts, how]))


def _describe_settled(invoice: Invoice, words: DocumentFormat, granted: int, drawn: int) -> list[str]:
    """Describe what was already settled at finalization, and from where."""
    ways = [(granted, "{amount} paid by credits"), (drawn, "{amount} paid from your balance")]
    parts = [words.text(how, amount=words.amount(minor, invoice.currency)) for minor, how in ways if minor]
    if not parts:
        return []
    total = words.amount(invoice.total, invoice.currency)
    return [words.text("Of {total}, {parts}.", total=total, parts=words.text(" and ").join(parts))]


def _has_reductions(lines: list[NamedLine]) -> bool:
    return any(each.line.is_usage and each.line.month_num for each in lines)


def _groups(lines: list[NamedLine], words: DocumentFormat, currency: str) -> tuple[DocumentGroup, ...]:
    rows = (
        (
            each.project,
            (
                str(each.line.n),
                TwoLineCell(each.title, each.all_terms),
                *quantity_cells(each.quantity, each.line.minor, words, currency),
                words.amount(each.line.minor, currency),
            ),
            each.line.minor,
        )
        for each in lines
    )
    return tuple(
        DocumentGroup(name, words.amount(minor, currency), tuple(cells)) for name, cells, minor in group_rows(rows)
    )


def quantity_cells(
    quantity: LineQuantity, minor: int, words: DocumentFormat, currency: str
) -> tuple[TwoLineCell | str, str, str]:
    """Return quantity, unit and price of a line; hours are shown with their seconds."""
    if quantity.unit_seconds is None or quantity.nano_per_hour is None:
        return "1", words.text(quantity.unit), words.amount(minor, currency)
    seconds = words.text("{seconds} s", seconds=words.number(quantity.unit_seconds))
    hours = TwoLineCell(words.hours(quantity.unit_seconds), seconds)
    return hours, words.text(quantity.unit), words.rate(quantity.nano_per_hour, currency)
