"""Taxes and parties of an invoice, as its page shows them."""

from dataclasses import dataclass
from typing import Any

from billing.domain import tax
from billing.domain.countries import COUNTRY_NAMES
from billing.domain.parties import InvoiceParty
from billing.domain.tax import TaxTreatment
from billing.models import Invoice, InvoiceTax
from billing.services.tax import tax_determination
from tenants.models import Tenant


@dataclass(frozen=True, slots=True)
class InvoiceTaxes:
    """An invoice's taxes and parties."""

    customer: InvoiceParty | None
    supplier: InvoiceParty | None
    rows: list[dict[str, Any]]
    because: str  # why it is taxed like this


def read_invoice_taxes(invoice: Invoice, tenant: Tenant) -> InvoiceTaxes:
    """Return an invoice's taxes and parties; of a draft, at current rates."""
    customer, supplier = invoice_parties(invoice, tenant)
    treatment = TaxTreatment(invoice.treatment)
    rows = InvoiceTax.objects.filter(invoice=invoice).select_related("rate") if treatment else ()
    shown = [
        {"row": row, "label": _tax_label(row, treatment), "known": row.rate_bp is not None}
        for row in sorted(rows, key=lambda row: (-row.net, row.category))
    ]
    return InvoiceTaxes(customer, supplier, shown, tax.TREATMENT_TEXTS[treatment])


def invoice_parties(invoice: Invoice, tenant: Tenant) -> tuple[InvoiceParty | None, InvoiceParty | None]:
    """Return the customer and supplier; None on invoices of older releases."""
    if not invoice.number:
        return tax_determination.get_customer(tenant), tax_determination.get_supplier()
    kept = (invoice.customer, invoice.supplier)
    customer, supplier = (InvoiceParty(**party) if party else None for party in kept)
    return customer, supplier


def _tax_label(row: InvoiceTax, treatment: TaxTreatment) -> str:
    """Return the label of a tax row: VAT 19 % Germany."""
    rate = "" if row.rate_bp is None else f" {tax.format_rate_percent(row.rate_bp)} %"
    where = f", {COUNTRY_NAMES[row.rate.jurisdiction]}" if row.rate else ""
    kind = "" if row.category == tax.STANDARD or treatment not in tax.TAXED_TREATMENTS else f" {row.category}"
    return f"VAT{kind}{rate}{where}"
