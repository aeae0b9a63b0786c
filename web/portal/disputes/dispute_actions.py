"""Form actions that dispute an invoice line and withdraw a dispute."""

from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.models import Dispute, Invoice
from billing.services.invoicing.disputes import dispute_requests
from tenants.services.authentication import require
from tenants.services.errors import InvalidValue, ObjectNotFound
from web.portal import kept_forms
from web.portal.actions import outcome_message
from web.portal.invoices.invoice_pages import find_invoice
from web.portal.page_context import POST, PageRequest, tenant_page

MAX_LINE_DIGITS = 9


@tenant_page("billing.read", methods=POST)
def open_dispute(request: PageRequest, pk: str) -> HttpResponse:
    """Dispute one line of an invoice: the typed amount, or all that remains."""
    require(request.roles, "billing.write", ())
    found = find_invoice(request, pk)
    done = _("Dispute opened. Your operator will review it and you will get an e-mail.")
    with outcome_message(request, done=done):
        dispute_requests.dispute_lines(
            found,
            lines=_disputed_line(request, found),
            reason=request.POST.get("reason", ""),
            actor=request.actor,
            now=request.now,
        )
    if kept_forms.has_kept_form(request):  # refused: its form stands beside the line
        return redirect(f"{reverse('invoice', args=[pk])}?{urlencode({'line': request.POST.get('line', '')[:9]})}")
    return redirect(f"{reverse('invoice', args=[pk])}#disputes")


@tenant_page("billing.read", methods=POST)
def withdraw_dispute(request: PageRequest, pk: str) -> HttpResponse:
    """Withdraw a dispute."""
    require(request.roles, "billing.write", ())
    found = Dispute.objects.filter(tenant=request.tenant, pk=pk).first()
    if found is None:
        raise ObjectNotFound(_("This dispute does not exist."), fix=_("Open the invoice to see its disputes."))
    with outcome_message(request, done=_("Dispute withdrawn; the invoice does not change.")):
        dispute_requests.withdraw_dispute(found, actor=request.actor, now=request.now)
    return redirect(f"{reverse('invoice', args=[found.invoice_id])}#disputes")


def _disputed_line(request: PageRequest, invoice: Invoice) -> dict[int, int | None]:
    number, amount = request.POST.get("line", ""), request.POST.get("amount", "").strip()
    if not (number.isascii() and number.isdigit() and len(number) <= MAX_LINE_DIGITS):
        raise InvalidValue("line", _("No invoice line was given."), fix=_("Open the line and dispute it there."))
    return {int(number): dispute_requests.parse_optional_amount(amount or None, invoice.currency)}
