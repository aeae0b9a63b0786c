"""Invoices and credit notes of any tenant as PDF, for operators: the same that their tenant gets."""

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from billing.models import CreditNote, Invoice
from billing.portal import downloads
from billing.services.papers import keeping
from broker.portal.operations import OpsRequest, page
from tenants.services.refusals import Missing


@require_safe
@page("invoice.pdf")
def invoice(request: OpsRequest, pk: str) -> HttpResponse:
    """Hand out the paper of an invoice."""
    found = Invoice.objects.select_related("period", "tenant").filter(pk=pk).first()
    if found is None:
        raise Missing(f"There is no invoice {pk!r}.", fix="Look for it in the list of invoices.")
    return downloads.paper(request, keeping.invoice_paper(found, now=request.now))


@require_safe
@page("credit-note.pdf")
def credit_note(request: OpsRequest, pk: str) -> HttpResponse:
    """Hand out the paper of a credit note."""
    found = CreditNote.objects.select_related("invoice__period", "invoice__tenant").filter(pk=pk).first()
    if found is None:
        raise Missing(f"There is no credit note {pk!r}.", fix="Look for it on its invoice.")
    return downloads.paper(request, keeping.credit_note_paper(found, now=request.now))
