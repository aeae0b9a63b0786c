"""Supplier and customer on documents: as of finalization, or the current ones for drafts."""

from billing.domain import documents
from billing.domain.parties import InvoiceParty
from billing.models import Invoice
from billing.services.tax import tax_determination

DEFAULT_SUPPLIER = "gpubroker"


def invoice_supplier(invoice: Invoice) -> documents.DocumentParty:
    """Return the supplier of an invoice, or the default name if none is configured."""
    if invoice.finalized_at is None:
        return current_supplier()
    return (
        document_party(InvoiceParty(**invoice.supplier))
        if invoice.supplier
        else documents.DocumentParty(DEFAULT_SUPPLIER)
    )


def current_supplier() -> documents.DocumentParty:
    """Return the current supplier, for documents that belong to no invoice."""
    supplier = tax_determination.get_supplier()
    return document_party(supplier) if supplier else documents.DocumentParty(DEFAULT_SUPPLIER)


def invoice_customer(invoice: Invoice) -> documents.DocumentParty:
    """Return the customer of an invoice.

    Its id, which never changes, is in the footer of its documents.
    """
    if invoice.finalized_at is None:
        customer = tax_determination.get_customer(invoice.tenant)
    else:  # older invoices have no stored customer: use the current name
        customer = InvoiceParty(**invoice.customer) if invoice.customer else InvoiceParty(invoice.tenant.name)
    return document_party(customer)


def document_party(party: InvoiceParty) -> documents.DocumentParty:
    """Return a party as documents show it."""
    vat = [f"VAT number {party.vat_id}"] if party.vat_id else []
    email = [party.email] if party.email else []
    return documents.DocumentParty(party.name, (*party.address, *vat, *email))
