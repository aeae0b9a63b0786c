"""The page on how invoices are paid: the card that is charged, and adding one at Stripe."""

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from billing.models import CardForm, Payment
from billing.portal import calls
from billing.portal.invoices import may_settle
from billing.portal.pages import PageRequest, page
from billing.services.stripe import cards
from ports import payments
from tenants.services.permissions import require

SHOWN = 20


@require_http_methods(["GET", "POST"])
@page("billing.read")
def payment(request: PageRequest) -> HttpResponse:
    """Show the card and the latest payments; a POST asks for Stripe's form to add a card in."""
    require(request.roles, "billing.read")  # of the whole tenant, as its invoices are
    if request.method == "POST":
        require(request.roles, "billing.write")
        made = cards.ask(request.tenant, actor=request.actor, now=request.now)
        return redirect(f"{reverse('payment')}?adding={made.pk}")
    back = _mine(request, request.GET.get("form", ""))
    if back is not None:
        cards.look_now(back, now=request.now)
    form = back or _mine(request, request.GET.get("adding", ""))
    gateway = payments.gateway()
    paid = Payment.objects.filter(tenant=request.tenant).select_related("invoice__period")
    shown = {
        "card": cards.saved(request.tenant),
        "cards_here": cards.taken_here(),
        "gateway": gateway.name if gateway else "",
        "form": form,
        "back": back is not None,
        "may_pay": may_settle(request),
        "payments": list(paid.order_by("-opened_at", "-pk")[:SHOWN]),
        "tenant": request.tenant,
        "now": request.now,
        "call": calls.get("/cards"),
        "call_add": calls.post("/card-forms", {}),
        "call_payments": calls.get("/payments?limit=500"),
    }
    return render(request, "billing/payment.html", shown)


def _mine(request: PageRequest, pk: str) -> CardForm | None:
    return CardForm.objects.filter(tenant=request.tenant, pk=pk[:40]).first() if pk else None
