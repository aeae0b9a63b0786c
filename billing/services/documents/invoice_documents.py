"""Invoices as documents: as of finalization, or a draft's current state.

Later events of a final invoice (payments, credit notes) have documents of their own and change nothing
here.
"""

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
    format_day_range,
    format_percent,
    format_rate,
    group_rows,
)
from billing.domain.money import format_minor
from billing.domain.tax import TREATMENT_TEXTS, TaxTreatment
from billing.models import BalanceDraw, GrantDraw, Invoice
from billing.services.documents.document_parties import invoice_customer, invoice_supplier
from billing.services.documents.invoice_bundles import bundle_file_name
from billing.services.documents.line_names import NamedLine, name_lines
from billing.services.payments.disputed_amounts import last_day_before

COLUMNS = (
    DocumentColumn("#", "n"),
    DocumentColumn("Description", "what"),
    DocumentColumn("Seconds", "num"),
    DocumentColumn("Per hour", "num"),
    DocumentColumn("Amount", "num"),
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
    "You can dispute any line on the invoice's page until the end of {}. Disputed amounts are not collected until the"
    " dispute is resolved."
)


def invoice_document(invoice: Invoice) -> Document:
    """Return the document of an invoice whose period is prefetched.

    Runs in the tenant's row-level security scope.
    """
    zone, currency = ZoneInfo(invoice.period.time_zone), invoice.currency
    granted = sum(GrantDraw.objects.filter(invoice=invoice).values_list("minor", flat=True))
    drawn = sum(BalanceDraw.objects.filter(invoice=invoice).values_list("minor", flat=True))
    final = invoice.number is not None
    span = invoice.period.span
    number = str(invoice) if final else f"{invoice.period.label}, not final"
    facts = [
        ("Period", format_day_range(span.lower, span.upper, zone)),
        ("Time zone", invoice.period.time_zone),
        ("Currency", currency),
    ]
    if invoice.finalized_at:
        facts.insert(0, ("Issued", format_day(invoice.finalized_at, zone)))
    else:
        facts.insert(0, ("As of", format_day(invoice.refreshed_at, zone)))
    if invoice.due_at:
        facts.insert(1, ("Due", format_day(invoice.due_at, zone)))
    sums = [*_tax_totals(invoice), DocumentTotal("Total", format_minor(invoice.total, currency), "strong")]
    if granted:
        sums.append(DocumentTotal("Paid by credits", format_minor(-granted, currency)))
    if drawn:
        sums.append(DocumentTotal("Paid from your balance", format_minor(-drawn, currency)))
    if granted or drawn:
        sums.append(DocumentTotal("Due", format_minor(invoice.total - granted - drawn, currency), "strong"))
    lines = name_lines(invoice)
    return Document(
        title="Invoice",
        number=number,
        supplier=invoice_supplier(invoice),
        to="Bill to",
        customer=invoice_customer(invoice),
        facts=tuple(facts),
        headline=_headline(invoice, granted=granted, drawn=drawn),
        columns=COLUMNS,
        groups=_groups(lines, currency),
        sums=tuple(sums),
        notes=(
            *_treatment_notes(invoice),
            DocumentNote("How amounts are calculated", LINE_RULE),
            *([DocumentNote("Discounts", MONTH_RULE)] if _has_reductions(lines) else []),
            DocumentNote("Verify this invoice", CHECK_NOTE, f"python verify.py {bundle_file_name(invoice)}"),
            *_dispute_notes(invoice, zone),
        ),
        foot=f"Invoice {number} · {invoice.pk} · {invoice.tenant_id}",
        draft=not final,
    )


def _tax_totals(invoice: Invoice) -> list[DocumentTotal]:
    """Return the subtotal and the tax per category; empty if no supplier is configured."""
    if not invoice.treatment:
        return []
    found = [DocumentTotal("Subtotal", format_minor(invoice.subtotal, invoice.currency))]
    for each in invoice.taxes.order_by("-rate_bp", "category"):
        of = format_minor(each.net, invoice.currency)
        label = (
            f"VAT {format_percent(each.rate_bp)} of {of}" if each.rate_bp is not None else f"VAT of {of}, rate unknown"
        )
        found.append(DocumentTotal(label, format_minor(each.tax, invoice.currency)))
    return found


def _treatment_notes(invoice: Invoice) -> list[DocumentNote]:
    words = TREATMENT_TEXTS[TaxTreatment(invoice.treatment)]
    return [DocumentNote("VAT", words)] if words else []


def _dispute_notes(invoice: Invoice, zone: ZoneInfo) -> list[DocumentNote]:
    if invoice.disputable_until is None:
        return []
    return [
        DocumentNote(
            "Dispute a charge", DISPUTE_NOTE.format(f"{last_day_before(invoice.disputable_until, zone):%d %B %Y}")
        )
    ]


def _headline(invoice: Invoice, *, granted: int, drawn: int) -> DocumentHeadline:
    currency = invoice.currency
    if invoice.number is None:
        more = "A draft cannot be paid. It changes until its month is closed."
        return DocumentHeadline(format_minor(invoice.total, currency), "so far", more)
    due, parts = invoice.total - granted - drawn, _describe_settled(invoice, granted, drawn)
    if not due:
        return DocumentHeadline(format_minor(0, currency), "no amount due", " ".join(parts))
    by = f"due by {format_day(invoice.due_at, ZoneInfo(invoice.period.time_zone))}" if invoice.due_at else "due"
    how = "It is collected automatically." if invoice.collected else _transfer_text(invoice)
    return DocumentHeadline(format_minor(due, currency), by, " ".join([*parts, how]))


def _describe_settled(invoice: Invoice, granted: int, drawn: int) -> list[str]:
    """Describe what was already settled at finalization, and from where."""
    ways = [(granted, "paid by credits"), (drawn, "paid from your balance")]
    parts = [f"{format_minor(minor, invoice.currency)} {how}" for minor, how in ways if minor]
    return [f"Of {format_minor(invoice.total, invoice.currency)}, {' and '.join(parts)}."] if parts else []


def _transfer_text(invoice: Invoice) -> str:
    return f"Pay by bank transfer with the reference {invoice}."


def _has_reductions(lines: list[NamedLine]) -> bool:
    return any(each.line.is_usage and each.line.month_num for each in lines)


def _groups(lines: list[NamedLine], currency: str) -> tuple[DocumentGroup, ...]:
    rows = (
        (
            each.project,
            (
                str(each.line.n),
                TwoLineCell(each.title, each.all_terms),
                f"{each.line.unit_seconds:,}" if each.line.is_usage else "",
                format_rate(each.nano_per_hour, currency) if each.nano_per_hour is not None else "",
                format_minor(each.line.minor, currency),
            ),
            each.line.minor,
        )
        for each in lines
    )
    return tuple(
        DocumentGroup(name, format_minor(minor, currency), tuple(cells)) for name, cells, minor in group_rows(rows)
    )
