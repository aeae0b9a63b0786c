"""Electronic invoices as files: XRechnung XML, and Factur-X (ZUGFeRD) within a PDF."""

import facturx

from billing.domain.documents import Document
from billing.domain.e_invoices import GUIDELINES
from billing.models import CreditNote, Invoice
from billing.services.documents.e_invoices.invoice_content import credit_note_terms, invoice_terms
from billing.services.documents.e_invoices.invoice_parties import XRECHNUNG, EInvoiceImpossible, Terms
from billing.services.documents.e_invoices.pdf_metadata import correct_metadata

FACTUR_X, LEVEL = "factur-x", "en16931"
PROFILES = (XRECHNUNG, FACTUR_X)


def xrechnung_xml(of: Invoice | CreditNote) -> bytes:
    """Return an invoice or credit note as XRechnung, in the syntax of UN/CEFACT CII.

    Call in the tenant's RLS scope. Raises EInvoiceImpossible if a party lacks what it requires.
    """
    xml = _write_xml(_read_terms(of, XRECHNUNG))
    return xml.replace(f">{GUIDELINES[FACTUR_X]}<".encode(), f">{GUIDELINES[XRECHNUNG]}<".encode(), 1)


def e_invoice_xml(of: Invoice | CreditNote, profile: str) -> bytes:
    """Return the XML of a profile: XRechnung, or Factur-X as PDFs contain it.

    Call in the tenant's RLS scope. Raises EInvoiceImpossible if a party lacks what it requires.
    """
    return xrechnung_xml(of) if profile == XRECHNUNG else _write_xml(_read_terms(of, FACTUR_X))


def factur_x_xml(of: Invoice | CreditNote) -> bytes | None:
    """Return the XML for the PDF of an invoice or credit note.

    None if a party lacks what it requires.
    Call in the tenant's RLS scope.
    """
    try:
        return e_invoice_xml(of, FACTUR_X)
    except EInvoiceImpossible:
        return None


def embed_xml(pdf: bytes, xml: bytes, document: Document) -> bytes:
    """Return a PDF/A-3 with its electronic invoice embedded."""
    title = f"{document.title} {document.number}"
    about = {"author": document.supplier.name, "keywords": "Factur-X, ZUGFeRD", "title": title, "subject": title}
    made: bytes = facturx.generate_from_binary(
        pdf,
        xml,
        flavor=FACTUR_X,
        level=LEVEL,
        check_xsd=False,
        check_schematron=False,
        pdf_metadata=about,
        afrelationship="alternative",  # as ZUGFeRD wants it for a whole invoice
        lang=document.language,
    )
    return correct_metadata(made)


def _read_terms(of: Invoice | CreditNote, profile: str) -> Terms:
    return invoice_terms(of, profile) if isinstance(of, Invoice) else credit_note_terms(of, profile)


def _write_xml(terms: Terms) -> bytes:
    made = facturx.generate_cii_xml(terms, level=LEVEL, check_xsd=True, check_schematron=False)
    xml: bytes = made if isinstance(made, bytes) else made.encode()
    return xml
