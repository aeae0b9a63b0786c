"""Invoices and credit notes as PDF."""

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from billing.models import CreditNote
from billing.portal import downloads
from billing.portal.invoices import invoice_of
from billing.portal.pages import PageRequest, page
from billing.services.papers import keeping
from tenants.services.permissions import require
from tenants.services.refusals import Missing


@require_safe
@page("billing.read")
def invoice(request: PageRequest, pk: str) -> HttpResponse:
    """Hand out the paper of an invoice; of a draft, as it is now."""
    return downloads.paper(request, keeping.invoice_paper(invoice_of(request, pk), now=request.now))


@require_safe
@page("billing.read")
def credit_note(request: PageRequest, pk: str) -> HttpResponse:
    """Hand out the paper of a credit note."""
    require(request.roles, "billing.read")
    found = CreditNote.objects.filter(tenant=request.tenant, pk=pk)
    note = found.select_related("invoice__period", "invoice__tenant").first()
    if note is None:
        raise Missing("There is no such credit note here.", fix="Look for it on its invoice.")
    return downloads.paper(request, keeping.credit_note_paper(note, now=request.now))
