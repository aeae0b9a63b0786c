"""What of an invoice is tax, and who stands on it, as its page says it."""

from typing import Any

from billing.domain import tax
from billing.domain.countries import NAMES
from billing.domain.parties import Party
from billing.domain.tax import Treatment
from billing.models import Invoice, InvoiceTax
from billing.services.tax import standings
from tenants.models import Tenant


def told(invoice: Invoice, tenant: Tenant) -> dict[str, Any]:
    """Return its taxes and parties; of a draft as things stand now, of a final one as it was."""
    customer, supplier = parties(invoice, tenant)
    treatment = Treatment(invoice.treatment)
    rows = InvoiceTax.objects.filter(invoice=invoice).select_related("rate") if treatment else ()
    return {
        "customer": customer,
        "supplier": supplier,
        "taxes": [
            {"row": row, "label": _label(row, treatment), "known": row.rate_bp is not None}
            for row in sorted(rows, key=lambda row: (-row.net, row.category))
        ],
        "taxed_because": tax.IN_WORDS[treatment],
    }


def parties(invoice: Invoice, tenant: Tenant) -> tuple[Party | None, Party | None]:
    """Return who it is made out to and who supplies; nobody on invoices of older releases."""
    if not invoice.number:
        return standings.customer(tenant), standings.supplier()
    kept = (invoice.customer, invoice.supplier)
    customer, supplier = (Party(**party) if party else None for party in kept)
    return customer, supplier


def _label(row: InvoiceTax, treatment: Treatment) -> str:
    """Say it as people do: VAT 19 % Germany."""
    rate = "" if row.rate_bp is None else f" {tax.per_cent(row.rate_bp)} %"
    where = f", {NAMES[row.rate.jurisdiction]}" if row.rate else ""
    kind = "" if row.category == tax.STANDARD or treatment not in tax.TAXED else f" {row.category}"
    return f"VAT{kind}{rate}{where}"
