"""PDF invoices and credit notes of any tenant, for operators."""

from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from billing.models import CreditNote, Invoice
from billing.services.documents import document_store
from tenants.services.errors import ObjectNotFound
from web.http import downloads
from web.portal.operators.page_context import OperatorRequest, operator_page


@require_safe
@operator_page("invoice.pdf")
def download_invoice_pdf(request: OperatorRequest, pk: str) -> HttpResponse:
    """Download the PDF of an invoice."""
    found = Invoice.objects.select_related("period", "tenant").filter(pk=pk).first()
    if found is None:
        raise ObjectNotFound(
            _("Invoice {pk!r} was not found.").format(pk=pk), fix=_("Select it from the list of invoices.")
        )
    return downloads.pdf_response(request, document_store.invoice_pdf(found, now=request.now))


@require_safe
@operator_page("credit-note.pdf")
def download_credit_note_pdf(request: OperatorRequest, pk: str) -> HttpResponse:
    """Download the PDF of a credit note."""
    found = CreditNote.objects.select_related("invoice__period", "invoice__tenant").filter(pk=pk).first()
    if found is None:
        raise ObjectNotFound(_("Credit note {pk!r} was not found.").format(pk=pk), fix=_("Open it from its invoice."))
    return downloads.pdf_response(request, document_store.credit_note_pdf(found, now=request.now))
