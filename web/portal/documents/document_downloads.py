"""Downloads of a tenant's invoices and credit notes: PDF, XRechnung, and CSV exports."""

from typing import Any
from zoneinfo import ZoneInfo

from django.http import HttpResponse
from django.utils.translation import gettext as _

from billing.models import CreditNote
from billing.services.documents import csv_exports, document_store
from billing.services.documents.e_invoices.invoice_parties import XRECHNUNG
from billing.services.documents.focus import focus_months
from billing.services.reports.accounting.month_exports import MONTH
from tenants.services.authentication import require
from tenants.services.errors import InvalidValue, ObjectNotFound
from web.http import downloads
from web.portal.invoices.invoice_pages import find_invoice
from web.portal.page_context import SAFE, PageRequest, tenant_page


@tenant_page("billing.read", methods=SAFE)
def download_invoice_pdf(request: PageRequest, pk: str) -> HttpResponse:
    """Download the PDF of an invoice; of a draft, as it is now."""
    return downloads.pdf_response(request, document_store.invoice_pdf(find_invoice(request, pk), now=request.now))


@tenant_page("billing.read", methods=SAFE)
def download_invoice_xrechnung(request: PageRequest, pk: str) -> HttpResponse:
    """Download the electronic invoice as XML: XRechnung, or Factur-X."""
    return downloads.xml_response(document_store.e_invoice_file(find_invoice(request, pk), _profile(request)))


@tenant_page("billing.read", methods=SAFE)
def download_credit_note_pdf(request: PageRequest, pk: str) -> HttpResponse:
    """Download the PDF of a credit note."""
    return downloads.pdf_response(
        request, document_store.credit_note_pdf(_find_credit_note(request, pk), now=request.now)
    )


@tenant_page("billing.read", methods=SAFE)
def download_credit_note_xrechnung(request: PageRequest, pk: str) -> HttpResponse:
    """Download the electronic credit note as XML: XRechnung, or Factur-X."""
    return downloads.xml_response(document_store.e_invoice_file(_find_credit_note(request, pk), _profile(request)))


def _profile(request: PageRequest) -> str:
    return request.GET.get("profile") or XRECHNUNG


def _find_credit_note(request: PageRequest, pk: str) -> CreditNote:
    require(request.roles, "billing.read")
    found = CreditNote.objects.filter(tenant=request.tenant, pk=pk)
    note = found.select_related("invoice__period", "invoice__tenant").first()
    if note is None:
        raise ObjectNotFound(_("This credit note does not exist."), fix=_("Open the invoice to see its credit notes."))
    return note


@tenant_page("billing.read")
def download_focus_month(request: PageRequest) -> Any:
    """Download FOCUS of everything billed in a month, by default this one."""
    zone = ZoneInfo(request.tenant.time_zone)
    month = request.GET.get("month") or f"{request.now.astimezone(zone):%Y-%m}"
    if not MONTH.fullmatch(month):
        raise InvalidValue(
            "month", _("{month!r} is not a month.").format(month=month), fix=_("Use a month such as 2026-10.")
        )
    require(request.roles, "billing.read")
    pieces = focus_months.month_csv(month, tenant_id=request.tenant.pk)
    return downloads.streamed_csv_response(f"focus-{month}.csv", pieces)


@tenant_page("billing.read")
def download_export(request: PageRequest, pk: str, kind: str) -> Any:
    """Download an export, streamed if it is large."""
    found = find_invoice(request, pk)
    if kind not in csv_exports.EXPORT_KINDS:
        raise ObjectNotFound(
            _("Unknown export {kind!r}.").format(kind=kind),
            fix=_("Use one of {export_kinds}.").format(export_kinds=", ".join(csv_exports.EXPORT_KINDS)),
        )
    return downloads.streamed_csv_response(csv_exports.csv_file_name(found, kind), csv_exports.csv_text(found, kind))
