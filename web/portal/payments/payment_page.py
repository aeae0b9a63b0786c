"""Payment page: the payment card that is charged, and adding one at Stripe."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from billing.models import Payment, PaymentCardForm, StripeCustomer
from billing.services.payments.stripe import payment_cards
from billing.services.tax.tax_determination import is_showback
from ports import payments
from tenants.services.authentication import require
from web.portal.invoices.invoice_pages import may_pay
from web.portal.page_context import GET_OR_POST, PageRequest, tenant_page

MAX_PAYMENTS = 20


@tenant_page("billing.read", methods=GET_OR_POST)
def show_payment(request: PageRequest) -> HttpResponse:
    """Show the payment card and latest payments; a POST opens Stripe's card form."""
    require(request.roles, "billing.read")  # of the whole tenant, as its invoices are
    if request.method == "POST":
        require(request.roles, "billing.write")
        made = payment_cards.request_card_form(request.tenant, actor=request.actor, now=request.now)
        return redirect(f"{reverse('payment-method')}?adding={made.pk}")
    back = _own_card_form(request, request.GET.get("form", ""))
    if back is not None:
        payment_cards.check_form_now(back, now=request.now)
    form = back or _own_card_form(request, request.GET.get("adding", ""))
    gateway = payments.gateway()
    paid = Payment.objects.filter(tenant=request.tenant).select_related("invoice__period")
    page = PaymentMethodPage(
        card=payment_cards.find_saved_card(request.tenant),
        cards_here=payment_cards.collects_by_card(),
        gateway=gateway.name if gateway else "",
        form=form,
        returned_from_stripe=back is not None,
        may_pay=may_pay(request),
        shown_back=is_showback(request.tenant.pk),
        payments=list(paid.order_by("-opened_at", "-pk")[:MAX_PAYMENTS]),
    )
    return render(request, "payments/payment.html", {"page": page})


@dataclass(frozen=True, slots=True)
class PaymentMethodPage:
    """The payment card that is charged, and the latest payments."""

    card: StripeCustomer | None
    cards_here: bool
    gateway: str
    form: PaymentCardForm | None
    returned_from_stripe: bool  # the visitor has just returned from Stripe
    may_pay: bool
    shown_back: bool  # costs are only shown, nothing is paid
    payments: list[Payment]


def _own_card_form(request: PageRequest, pk: str) -> PaymentCardForm | None:
    return PaymentCardForm.objects.filter(tenant=request.tenant, pk=pk[:40]).first() if pk else None
