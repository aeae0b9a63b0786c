"""Files for an accountant: journal, DATEV batch, VAT and the lists of a month end.

Requires staff scope.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime

from billing.domain.csv_tables import render_csv
from billing.domain.money import decimal_string
from billing.domain.tax import format_rate_percent
from billing.models import JournalSettings
from billing.services.reports.accounting import journal, month_end, vat_report
from billing.services.reports.accounting.month_end import DeferredRevenue, OpenInvoice, UnbilledMonth
from billing.services.reports.accounting.vat_report import VatLine

MONTH = re.compile(r"20[0-9]{2}-(0[1-9]|1[0-2])")
FOCUS = "focus"  # streamed, so documents write it (focus_months.py)
EXPORT_NAMES = {
    "journal": "Journal, CSV",
    "datev": "Journal, DATEV",
    "vat": "VAT, CSV",
    "open-invoices": "Open invoices, CSV",
    "unbilled": "Unbilled revenue, CSV",
    "deferred": "Deferred revenue, CSV",
    FOCUS: "FOCUS, CSV",
}
CSV_TYPE = "text/csv; charset=utf-8"
DATEV_TYPE = "text/csv; charset=windows-1252"


@dataclass(frozen=True, slots=True)
class MonthExport:
    """A file with its name and media type."""

    name: str
    media_type: str
    content: bytes


def export_month(kind: str, label: str, settings: JournalSettings, *, tenant: str = "", now: datetime) -> MonthExport:
    """Return a file of a month such as `2026-10`, of all tenants or of one.

    A DATEV batch is always of all. Raises JournalIncomplete if it cannot be made.
    """
    if kind == "datev":
        content = b"".join(journal.datev_batch(label, settings, now=now))
        return MonthExport(f"EXTF_Buchungsstapel_{label}.csv", DATEV_TYPE, content)
    month = journal.journal_month(label, settings)
    heads, rows = _table(kind, label, month, settings, tenant)
    return MonthExport(f"{kind}-{label}.csv", CSV_TYPE, "".join(render_csv(heads, rows)).encode())


def export_journal(first: date, last: date, settings: JournalSettings, *, tenant: str = "") -> MonthExport:
    """Return the neutral journal of any days, both included."""
    days = journal.journal_days(first, last, settings)
    heads, rows = _table("journal", "", days, settings, tenant)
    return MonthExport(f"journal-{first}-{last}.csv", CSV_TYPE, "".join(render_csv(heads, rows)).encode())


def _table(
    kind: str, label: str, month: journal.JournalMonth, settings: JournalSettings, tenant: str
) -> tuple[tuple[str, ...], Iterable[tuple[object, ...]]]:
    if kind == "journal":
        entries = journal.read_journal(since=month.since, until=month.until, tenant=tenant)
        return journal.JOURNAL_HEADS, journal.journal_rows(entries, settings)
    if kind == "vat":
        return vat_report.VAT_HEADS, map(_vat_row, vat_report.vat_lines(label, label, tenant=tenant))
    if kind == "open-invoices":
        return month_end.AGEING_HEADS, map(_open_row, month_end.open_invoices(at=month.until, tenant=tenant))
    if kind == "unbilled":
        return month_end.UNBILLED_HEADS, map(_unbilled_row, month_end.unbilled_months(at=month.until, tenant=tenant))
    return month_end.DEFERRED_HEADS, map(_deferred_row, month_end.deferred_revenue(at=month.until, tenant=tenant))


def _open_row(each: OpenInvoice) -> tuple[object, ...]:
    return (
        *(each.tenant_id, each.tenant, each.invoice_id, each.number, each.month),
        *(_day(each.finalized_at), _day(each.due_at), each.currency),
        *(decimal_string(minor, each.currency) for minor in (each.total, each.minor)),
        *(each.days_overdue, each.age),
    )


def _unbilled_row(each: UnbilledMonth) -> tuple[object, ...]:
    return (
        *(each.tenant_id, each.tenant, each.month, each.invoice_id, each.number, _day(each.finalized_at)),
        *(each.currency, decimal_string(each.minor, each.currency)),
    )


def _deferred_row(each: DeferredRevenue) -> tuple[object, ...]:
    amounts = (decimal_string(minor, each.currency) for minor in (each.prepaid, each.granted))
    return each.tenant_id, each.tenant, each.currency, *amounts


def _vat_row(each: VatLine) -> tuple[object, ...]:
    own = ("" if minor is None else decimal_string(minor, each.own) for minor in (each.net_own, each.tax_own))
    return (
        *(each.month, each.treatment, each.country, each.category),
        "" if each.rate_bp is None else format_rate_percent(each.rate_bp),
        *(each.currency, each.tenant_id, each.tenant, each.vat_id),
        *(decimal_string(minor, each.currency) for minor in (each.net, each.tax)),
        *(each.invoices, each.credit_notes, each.own, *own),
        *(decimal_string(minor, each.currency) for minor in (each.net_bad_debts, each.tax_bad_debts)),
    )


def _day(at: datetime | None) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d}" if at else ""
