"""Downloads of any tenant's invoices, credit notes and statements, as the tenant sees them."""

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.http import HttpResponse
from django.utils.translation import gettext as _

from billing.domain.periods import midnight
from billing.models import CreditNote, Invoice
from billing.services.documents import csv_exports, document_store
from billing.services.documents.e_invoices.invoice_parties import XRECHNUNG
from billing.services.ledger import account_entries
from tenants.models import Tenant
from tenants.services.errors import ObjectNotFound
from tenants.services.rls import login_role_scope, tenant_scope
from web.http import downloads
from web.portal.operators.page_context import OperatorRequest, find_in_scope, operator_page
from web.portal.statements.statement_pages import CSV_HEADERS, statement_rows


@operator_page("invoice.export")
def download_export(request: OperatorRequest, pk: str, kind: str) -> Any:
    """Download an invoice's lines, its charges, or its charges as FOCUS."""
    found = Invoice.objects.select_related("period", "tenant").filter(pk=pk).first()
    if found is None or kind not in csv_exports.EXPORT_KINDS:
        raise ObjectNotFound(
            _("{pk!r} has no export {kind!r}.").format(pk=pk, kind=kind),
            fix=_("Available exports: {export_kinds}.").format(export_kinds=", ".join(csv_exports.EXPORT_KINDS)),
        )
    with login_role_scope(), tenant_scope(found.tenant_id):
        return downloads.streamed_csv_response(
            csv_exports.csv_file_name(found, kind), csv_exports.csv_text(found, kind)
        )


@operator_page("statement")
def download_statement(request: OperatorRequest, pk: str, kind: str) -> Any:
    """Download a tenant's statement of this year, as CSV or PDF."""
    tenant = Tenant.objects.filter(pk=pk).first()
    if tenant is None or kind not in ("csv", "pdf"):
        raise ObjectNotFound(
            _("{pk!r} has no export {kind!r}.").format(pk=pk, kind=kind),
            fix=_("Statements are available as csv and pdf."),
        )
    zone = ZoneInfo(tenant.time_zone)
    today = request.now.astimezone(zone).date()
    first, until = today.replace(month=1, day=1), request.now.replace(microsecond=0) + timedelta(seconds=1)
    with login_role_scope(), tenant_scope(tenant.pk):
        account = account_entries.read_account(tenant.pk, tenant.currency, since=midnight(first, zone), until=until)
        if kind == "pdf":
            return downloads.pdf_response(request, document_store.account_statement_pdf(tenant, account))
        return downloads.csv_response(
            f"statement-{tenant.name}-{first}-{today}".replace(" ", "-"), CSV_HEADERS, statement_rows(account)
        )


@operator_page("invoice.pdf")
def download_invoice_pdf(request: OperatorRequest, pk: str) -> HttpResponse:
    """Download the PDF of an invoice."""
    return downloads.pdf_response(request, document_store.invoice_pdf(_find_invoice(pk), now=request.now))


@operator_page("invoice.xrechnung")
def download_invoice_xrechnung(request: OperatorRequest, pk: str) -> HttpResponse:
    """Download the electronic invoice as XML: XRechnung, or Factur-X."""
    return downloads.xml_response(document_store.e_invoice_file(_find_invoice(pk), _profile(request)))


@operator_page("credit-note.pdf")
def download_credit_note_pdf(request: OperatorRequest, pk: str) -> HttpResponse:
    """Download the PDF of a credit note."""
    return downloads.pdf_response(request, document_store.credit_note_pdf(_find_credit_note(pk), now=request.now))


@operator_page("credit-note.xrechnung")
def download_credit_note_xrechnung(request: OperatorRequest, pk: str) -> HttpResponse:
    """Download the electronic credit note as XML: XRechnung, or Factur-X."""
    return downloads.xml_response(document_store.e_invoice_file(_find_credit_note(pk), _profile(request)))


def _profile(request: OperatorRequest) -> str:
    return request.GET.get("profile") or XRECHNUNG


def _find_invoice(pk: str) -> Invoice:
    rows = Invoice.objects.select_related("period", "tenant")
    return find_in_scope(rows, pk, _("Invoice"), fix=_("Select it from the list of invoices."))


def _find_credit_note(pk: str) -> CreditNote:
    rows = CreditNote.objects.select_related("invoice__period", "invoice__tenant")
    return find_in_scope(rows, pk, _("Credit note"), fix=_("Open it from its invoice."))
