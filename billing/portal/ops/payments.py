"""A payment that waits for a person: saying that its gateway took nothing."""

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from billing.models import Payment
from billing.services.payments import by_hand
from billing.services.payments.opening import asks_here
from broker.portal.operations import OpsRequest, Step, ask, page
from tenants.services.refusals import Missing
from tenants.services.walls import as_staff


@require_http_methods(["GET", "HEAD", "POST"])
@page("payment.untaken")
def untaken(request: OpsRequest, pk: str) -> HttpResponse:
    """Settle a payment by hand; a reason is required."""
    with as_staff():
        payment = Payment.objects.select_related("invoice", "tenant").filter(pk=pk).first()
    if payment is None:
        raise Missing(f"There is no payment {pk!r}.", fix="Go to the list of those that wait.")

    def act(why: str) -> str:
        by_hand.nothing_was_taken(payment, why=why, actor=request.actor, now=request.now)
        return f"Nothing was taken for {payment.invoice}; it is due again."

    step = Step(
        title=f"Nothing was taken for {payment.invoice} of {payment.tenant.name}?",
        verb="Nothing was taken",
        back=reverse("ops-system"),
        lines=(
            f"Look for {payment.pk} in the books of {payment.gateway} first. What was taken there and is denied here"
            " is taken a second time.",
            f"{payment.gateway} is set here and can be asked: if it accepts the payment again, have the tenant press"
            " \u201cTry again\u201d instead."
            if asks_here(payment)
            else f"{payment.gateway} is not set here any longer. If it may come back, set it again instead.",
            "The invoice is due again: its tenant may pay it, and what is collected unasked is asked for soon, as"
            " another payment. This one is never asked for again.",
        ),
        danger=True,
        hint="Stands on the tenant's invoice and in the audit trail.",
    )
    return ask(request, step, act)
