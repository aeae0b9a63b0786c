"""PDF invoices and credit notes of any tenant, for operators."""

from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from billing.models import CreditNote, Invoice
from billing.services.documents import document_store
from web.http import downloads
from web.portal.operators.page_context import OperatorRequest, find_in_scope, operator_page


@require_safe
@operator_page("invoice.pdf")
def download_invoice_pdf(request: OperatorRequest, pk: str) -> HttpResponse:
    """Download the PDF of an invoice."""
    rows = Invoice.objects.select_related("period", "tenant")
    found = find_in_scope(rows, pk, _("Invoice"), fix=_("Select it from the list of invoices."))
    return downloads.pdf_response(request, document_store.invoice_pdf(found, now=request.now))


@require_safe
@operator_page("credit-note.pdf")
def download_credit_note_pdf(request: OperatorRequest, pk: str) -> HttpResponse:
    """Download the PDF of a credit note."""
    rows = CreditNote.objects.select_related("invoice__period", "invoice__tenant")
    found = find_in_scope(rows, pk, _("Credit note"), fix=_("Open it from its invoice."))
    return downloads.pdf_response(request, document_store.credit_note_pdf(found, now=request.now))
