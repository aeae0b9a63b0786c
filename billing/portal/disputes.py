"""Disputing a charge from its invoice, and taking that back."""

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_POST

from billing.models import Dispute, Invoice
from billing.portal.invoices import invoice_of
from billing.portal.pages import PageRequest, page
from billing.services.disputes import asking
from tenants.portal.acts import act
from tenants.services.permissions import require
from tenants.services.refusals import Invalid, Missing

DIGITS = 9


@require_POST
@page("billing.read")
def dispute(request: PageRequest, pk: str) -> HttpResponse:
    """Dispute one line of an invoice: what was typed of it, or all that is left of it."""
    require(request.roles, "billing.write", ())
    found = invoice_of(request, pk)

    def do() -> None:
        asking.dispute(
            found,
            lines=_typed(request, found),
            reason=request.POST.get("reason", ""),
            actor=request.actor,
            now=request.now,
        )

    done = "Your dispute is open; your operator answers it, and you get a letter."
    return act(request, do, done=done, to=f"{reverse('invoice', args=[pk])}#disputes")


@require_POST
@page("billing.read")
def withdraw(request: PageRequest, pk: str) -> HttpResponse:
    """Take a dispute back."""
    require(request.roles, "billing.write", ())
    found = Dispute.objects.filter(tenant=request.tenant, pk=pk).first()
    if found is None:
        raise Missing("There is no such dispute here.", fix="Look for it on its invoice.")

    def do() -> None:
        asking.withdraw(found, actor=request.actor, now=request.now)

    return act(
        request,
        do,
        done="It is withdrawn; the invoice stays as it is.",
        to=f"{reverse('invoice', args=[found.invoice_id])}#disputes",
    )


def _typed(request: PageRequest, invoice: Invoice) -> dict[int, int | None]:
    number, amount = request.POST.get("line", ""), request.POST.get("amount", "").strip()
    if not (number.isascii() and number.isdigit() and len(number) <= DIGITS):
        raise Invalid("line", "No line is named.", fix="Open the line and dispute it there.")
    return {int(number): asking.amount_of(amount or None, invoice.currency)}
