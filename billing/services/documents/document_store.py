"""PDF documents as they are handed out; a final one is rendered once and stored.

A final document is rendered when it is first requested, and the stored bytes are returned ever after.
It is a PDF/A-3, made to be kept for years, and contains its electronic invoice (Factur-X) if both parties
have the details which that requires.
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from billing.domain.documents import SECOND, Document
from billing.models import CreditNote, Invoice, StoredDocument
from billing.services.documents.account_statements import account_statement_document
from billing.services.documents.credit_note_documents import credit_note_document
from billing.services.documents.e_invoices.e_invoice_files import PROFILES, e_invoice_xml, embed_xml, factur_x_xml
from billing.services.documents.e_invoices.invoice_parties import XRECHNUNG
from billing.services.documents.invoice_documents import invoice_document
from billing.services.documents.pdf_rendering import render_pdf
from billing.services.ledger.account_entries import TenantAccount
from tenants.models import Tenant
from tenants.services.errors import InvalidValue
from tenants.services.rls import login_role_scope, tenant_scope


@dataclass(frozen=True, slots=True)
class PdfFile:
    """A PDF with its file name and SHA-256."""

    pdf: bytes
    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class XmlFile:
    """An XML file with its name."""

    xml: bytes
    name: str


def invoice_pdf(invoice: Invoice, *, now: datetime) -> PdfFile:
    """Return the PDF of an invoice whose period is prefetched.

    A draft's is rendered each time and not stored.
    """
    name = f"invoice-{invoice if invoice.number else f'{invoice.period.label}-draft'}.pdf"
    with login_role_scope(), tenant_scope(invoice.tenant_id):  # operators' pages read as staff, which may not write
        if kept := StoredDocument.objects.filter(invoice=invoice).first():
            return PdfFile(bytes(kept.pdf), name, kept.pdf_sha256)
        document = invoice_document(invoice)
        xml = factur_x_xml(invoice)
    if invoice.finalized_at is None:
        return _pdf_file(render_pdf(document, at=invoice.refreshed_at), name)
    return _store(document, xml, invoice, name, at=invoice.finalized_at, now=now)


def credit_note_pdf(note: CreditNote, *, now: datetime) -> PdfFile:
    """Return the PDF of a credit note."""
    name = f"credit-note-{note}.pdf"
    with login_role_scope(), tenant_scope(note.tenant_id):
        if kept := StoredDocument.objects.filter(credit_note=note).first():
            return PdfFile(bytes(kept.pdf), name, kept.pdf_sha256)
        document = credit_note_document(note)
        xml = factur_x_xml(note)
    return _store(document, xml, note, name, at=note.issued_at, now=now)


def e_invoice_file(of: Invoice | CreditNote, profile: str = XRECHNUNG) -> XmlFile:
    """Return the electronic invoice of a document as XML.

    Raises EInvoiceImpossible if a party lacks details, and InvalidValue for an unknown profile.
    """
    if profile not in PROFILES:
        raise InvalidValue("profile", f"{profile!r} is not known.", fix=f"Use one of {', '.join(PROFILES)}.")
    name = f"{'invoice' if isinstance(of, Invoice) else 'credit-note'}-{of}-{profile}.xml"
    with login_role_scope(), tenant_scope(of.tenant_id):
        return XmlFile(e_invoice_xml(of, profile), name)


def account_statement_pdf(tenant: Tenant, account: TenantAccount) -> PdfFile:
    """Return the PDF of an account statement.

    It is not stored, because transfers booked later may belong to the same period.
    """
    zone = ZoneInfo(tenant.time_zone)
    first, last = account.since.astimezone(zone), (account.until - SECOND).astimezone(zone)
    name = f"statement-{first:%Y-%m-%d}-{last:%Y-%m-%d}.pdf"
    return _pdf_file(render_pdf(account_statement_document(tenant, account), at=account.until), name)


def _store(
    document: Document, xml: bytes | None, of: Invoice | CreditNote, name: str, *, at: datetime, now: datetime
) -> PdfFile:
    """Render a document outside any transaction and store it.

    If another process stored it first, that one is returned.
    """
    pdf = render_pdf(document, at=at, archival=True)
    made = _pdf_file(pdf if xml is None else embed_xml(pdf, xml, document), name)
    with login_role_scope(), tenant_scope(of.tenant_id):
        kept, _ = StoredDocument.objects.get_or_create(
            **({"invoice": of} if isinstance(of, Invoice) else {"credit_note": of}),
            defaults={
                "tenant_id": of.tenant_id,
                "content_sha256": document.sha256,
                "pdf": made.pdf,
                "pdf_sha256": made.sha256,
                "made_at": now,
            },
        )
    return PdfFile(bytes(kept.pdf), name, kept.pdf_sha256)


def _pdf_file(pdf: bytes, name: str) -> PdfFile:
    return PdfFile(pdf, name, hashlib.sha256(pdf).hexdigest())
