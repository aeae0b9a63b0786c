"""Supplier and customer on documents: as of finalization, or the current ones for drafts."""

from billing.domain import documents
from billing.domain.document_formats import ENGLISH, DocumentFormat, document_format
from billing.domain.parties import InvoiceParty
from billing.models import Invoice
from billing.services.tax import tax_determination

DEFAULT_SUPPLIER = "gpubroker"
LAYOUT_WORDS = ("From", "Page {page} of {pages}", "Why", "DRAFT")


def invoice_supplier(invoice: Invoice, words: DocumentFormat = ENGLISH) -> documents.DocumentParty:
    """Return the supplier of an invoice, or the default name if none is configured."""
    if invoice.finalized_at is None:
        return current_supplier(words)
    return (
        document_party(InvoiceParty(**invoice.supplier), words)
        if invoice.supplier
        else documents.DocumentParty(DEFAULT_SUPPLIER)
    )


def current_supplier(words: DocumentFormat = ENGLISH) -> documents.DocumentParty:
    """Return the current supplier, for documents that belong to no invoice."""
    supplier = tax_determination.get_supplier()
    return document_party(supplier, words) if supplier else documents.DocumentParty(DEFAULT_SUPPLIER)


def invoice_party(invoice: Invoice) -> InvoiceParty:
    """Return the customer of an invoice as of finalization; of a draft, the current one."""
    if invoice.finalized_at is None:
        return tax_determination.get_customer(invoice.tenant)
    # Older invoices have no stored customer: use the current name.
    return InvoiceParty(**invoice.customer) if invoice.customer else InvoiceParty(invoice.tenant.name)


def invoice_format(invoice: Invoice) -> DocumentFormat:
    """Return the language of an invoice's documents: that of its customer."""
    return document_format(invoice_party(invoice).language)


def invoice_customer(invoice: Invoice, words: DocumentFormat = ENGLISH) -> documents.DocumentParty:
    """Return the customer of an invoice.

    Its id, which never changes, is in the footer of its documents.
    """
    return document_party(invoice_party(invoice), words)


def invoice_order_number(invoice: Invoice) -> str:
    """Return the customer's own order number.

    That of finalization; of a draft the current one.
    """
    if invoice.finalized_at is None:
        return tax_determination.get_po_numbers([invoice.tenant]).get(invoice.tenant_id, "")
    return invoice.po_number


def layout_labels(words: DocumentFormat) -> tuple[tuple[str, str], ...]:
    """Return the words of the layout in a language."""
    return tuple((english, words.text(english)) for english in LAYOUT_WORDS)


def document_party(party: InvoiceParty, words: DocumentFormat = ENGLISH) -> documents.DocumentParty:
    """Return a party as documents show it."""
    vat = [words.text("VAT number {number}", number=party.vat_id)] if party.vat_id else []
    email = [party.email] if party.email else []
    return documents.DocumentParty(party.name, (*party.address, *vat, *email))
