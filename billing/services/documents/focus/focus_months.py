"""FOCUS rows of a month: everything billed in it, of one tenant or of all.

A month is FOCUS' billing period. So its invoice, a cancelled one and the one that replaces it are in one
file, with the credit notes that were issued in the month, whichever invoice they credit. The files of all
months add up to all invoices less all credit notes.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from django.db.models import Q

from billing.domain.csv_tables import render_csv
from billing.domain.periods import month_of
from billing.models import CreditNote, Invoice
from billing.services.documents.focus import charge_fields, focus_exports
from tenants.services.rls import staff_scope, tenant_scope

ZONE_MARGIN = timedelta(days=2)  # by which a month may begin or end elsewhere
STARTS = charge_fields.COLUMNS.index("BillingPeriodStart")


def month_csv(label: str, *, tenant_id: str = "") -> Iterator[str]:
    """Yield the CSV of a month such as `2026-10` in chunks.

    No transaction is open between the invoices, however slowly they are consumed. Call as the login role.
    """
    return render_csv(charge_fields.COLUMNS, _month_rows(label, tenant_id))


def _month_rows(label: str, tenant_id: str) -> Iterator[tuple[str, ...]]:
    for pk, owner in _invoices_of(label, tenant_id):
        with tenant_scope(owner):
            invoice = Invoice.objects.select_related("period", "tenant").get(pk=pk)
        starts = _month_starts(invoice, label)
        yield from (row for row in focus_exports.focus_rows(invoice) if row[STARTS] in starts)


def _invoices_of(label: str, tenant_id: str) -> list[tuple[str, str]]:
    """Return the invoices of a month, and those that were credited in it, by tenant."""
    first = datetime.fromisoformat(f"{label}-01").replace(tzinfo=UTC)
    window = (first - ZONE_MARGIN, first + timedelta(days=31) + ZONE_MARGIN)
    with tenant_scope(tenant_id) if tenant_id else staff_scope():
        credited = CreditNote.objects.filter(issued_at__range=window).values("invoice")
        found = Invoice.objects.filter(Q(period__label=label) | Q(pk__in=credited))
        found = found.filter(tenant=tenant_id) if tenant_id else found
        rows = found.order_by("tenant", "period__span", "finalized_at", "pk")
        return list(rows.values_list("pk", "tenant_id"))


def _month_starts(invoice: Invoice, label: str) -> set[str]:
    """Return the spellings of the month's begin in its rows."""
    middle = datetime.fromisoformat(f"{label}-15").replace(tzinfo=UTC)
    starts = {month_of(invoice.period.time_zone, middle).start}
    if invoice.period.label == label:
        starts.add(invoice.period.span.lower)
    return {charge_fields.format_utc(start) for start in starts}
