"""VAT that write-offs and later money change, by rate."""

from collections.abc import Iterator
from dataclasses import dataclass

from billing.domain.apportionment import apportion
from billing.models import InvoiceTax
from ports.postgres.sql_statements import query_rows


@dataclass(frozen=True, slots=True)
class BadDebt:
    """A month's change at one rate; minor units, negative for a write-off."""

    month: str
    treatment: str
    country: str
    category: str
    rate_bp: int | None
    currency: str
    tenant_id: str
    tenant: str
    vat_id: str
    net: int
    tax: int


def bad_debts(first: str, last: str, *, tenant: str = "") -> Iterator[BadDebt]:
    """Yield the changes of months such as `2026-10`, both included.

    They add up to what the ledger booked. Requires staff scope.
    """
    rows = query_rows("billing/reports/bad_debts", first=first, last=last, tenant=tenant)
    taxes = InvoiceTax.objects.filter(invoice__in={row[1] for row in rows}).order_by("invoice", "category")
    by_invoice = dict[str, dict[str, InvoiceTax]]()
    for each in taxes:
        by_invoice.setdefault(each.invoice_id, {})[each.category] = each
    for month, invoice, treatment, country, currency, tenant_id, name, vat_id, net, tax in rows:
        found = by_invoice.get(invoice, {})
        nets = apportion(net, {category: each.net for category, each in found.items()})
        parts = apportion(tax, {category: each.tax for category, each in found.items()})
        for category, each in found.items():
            yield BadDebt(
                *(month, treatment, country, category, each.rate_bp, currency, tenant_id, name, vat_id),
                nets[category],
                parts[category],
            )
