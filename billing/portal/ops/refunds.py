"""Sending money of a payment back to its card: how much of it can go, and what went already."""

import re

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from billing.domain.money import Money, NotAnAmount, minor_of
from billing.models import Payment, PaymentStatus, Refund
from billing.models.moves import UNSETTLED
from billing.services.refunds import opening
from billing.services.refunds.collecting import SENDING
from broker.portal.operations import OpsRequest, page
from tenants.portal.acts import MOST, ops_call
from tenants.portal.refused import because
from tenants.services.refusals import Invalid, Missing, Refused
from tenants.services.walls import as_staff

NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)


@require_http_methods(["GET", "HEAD", "POST"])
@page("payment.refund")
def refund(request: OpsRequest, pk: str) -> HttpResponse:
    """Show what of a payment can go back to its card; a POST sends so much of it back."""
    payment = _payment_of(pk)
    refusal: Refused | None = None
    if request.method == "POST":
        try:
            made = opening.refund(
                payment,
                minor=_amount(request.POST.get("amount", ""), payment.currency),
                seen=_seen(request.POST.get("seen", "")),
                why=request.POST.get("reason", ""),
                actor=request.actor,
                now=request.now,
            )
        except Refused as said:
            refusal = said
            because(request, said.detail)
        else:
            amount = Money(made.minor, made.currency)
            messages.success(
                request, f"{amount} left the balance. {made.gateway} is asked to send it back to the card."
            )
            return redirect("ops-payment-refund", pk=pk)
    with as_staff():
        room = opening.room(payment, now=request.now)
        here = SENDING.asks_here(payment)
        rows = list(payment.sent_back.order_by("-opened_at", "-pk"))
        waits = next((each for each in rows if each.status in UNSETTLED), None)
        told = {
            "payment": payment,
            "room": room,
            "most": str(Money(room.most, room.currency)).lstrip("€$£¥ "),
            "open": here and not waits and payment.status == PaymentStatus.SUCCEEDED and room.most > 0,
            "waits": waits,
            "here": here,
            "rows": rows,
            "refusal": refusal,
            "amount": request.POST.get("amount", ""),
            "reason": request.POST.get("reason", ""),
            "calls": [ops_call("Its refunds", "ops/refunds", payment=payment.pk, limit=MOST)],
        }
        return render(request, "ops/refund.html", told, status=refusal.status if refusal else 200)


@require_POST
@page("refund.ask_again")
def ask_again(request: OpsRequest, pk: str) -> HttpResponse:
    """Have a refund that is stuck asked for again."""
    with as_staff():
        found = Refund.objects.select_related("payment__invoice").filter(pk=pk).first()
    if found is None:
        raise Missing(f"There is no refund {pk!r}.", fix="Go to the payment that it is of.")
    try:
        opening.ask_again(found, actor=request.actor, now=request.now)
    except Refused as said:
        messages.error(request, said.detail)
    else:
        messages.success(request, f"{found.gateway} is asked for it again.")
    return redirect(reverse("ops-payment-refund", args=[found.payment_id]))


def _payment_of(pk: str) -> Payment:
    with as_staff():
        found = Payment.objects.select_related("invoice", "tenant").filter(pk=pk).first()
    if found is None:
        raise Missing(f"There is no payment {pk!r}.", fix="Look for its invoice in the list of invoices.")
    return found


def _amount(text: str, currency: str) -> int:
    try:
        return minor_of(text, currency)
    except NotAnAmount as odd:
        raise Invalid("amount", str(odd), fix="Type an amount such as 12.50.") from odd


def _seen(told: str) -> int:
    """Return how much had gone back when the page was shown, or raise Invalid for a form that says nothing."""
    if not NUMBER.fullmatch(told):
        raise Invalid("seen", "The form does not say how much had gone back.", fix="Open the page again.")
    return int(told)
