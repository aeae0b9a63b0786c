"""Payments and top-ups that wait for a person: saying that their gateway took nothing."""

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from billing.models import Payment, PaymentStatus, TopUp
from billing.services.moves import by_hand
from billing.services.moves.moving import Moving, Row
from billing.services.payments.collecting import PAYMENTS
from billing.services.topups.collecting import TOPUPS
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
    then = (
        "The invoice is due again: its tenant may pay it, and what is collected unasked is asked for soon, as"
        " another payment. This one is never asked for again."
    )
    return _ask(request, PAYMENTS, payment, str(payment.invoice), f"{payment.invoice} is due again", then)


@require_http_methods(["GET", "HEAD", "POST"])
@page("topup.untaken")
def topup_untaken(request: OpsRequest, pk: str) -> HttpResponse:
    """Settle a top-up by hand; a reason is required."""
    with as_staff():
        topup = TopUp.objects.select_related("tenant").filter(pk=pk).first()
    if topup is None:
        raise Missing(f"There is no top-up {pk!r}.", fix="Go to the list of those that wait.")
    then = "The wallet can be topped up again, by another top-up. This one is never asked for again."
    return _ask(request, TOPUPS, topup, "the top-up", "the wallet can be topped up", then)


def _ask(request: OpsRequest, moving: Moving[Row], row: Row, what: str, done: str, then: str) -> HttpResponse:
    def act(why: str) -> str:
        found = by_hand.nothing_was_taken(moving, row, why=why, actor=request.actor, now=request.now)
        if found.status == PaymentStatus.DECLINED:
            return f"Nothing was taken for {what}; {done}."
        return f"{row.gateway} is asked to see to that; {done} once it has."

    step = Step(
        title=f"Nothing was taken for {what} of {row.tenant.name}?",
        verb="Nothing was taken",
        back=reverse("ops-system"),
        lines=(
            f"Look for {row.pk} in the books of {row.gateway} first. What was taken there and is denied here"
            " is taken a second time.",
            f"{row.gateway} is set here and is asked first: what is there is withdrawn, so that nobody pays it"
            " later. If it was taken after all, that is written; while it does not answer, this goes on waiting."
            if moving.asks_here(row)
            else f"{row.gateway} is not set here any longer. If it may come back, set it again instead.",
            then,
        ),
        danger=True,
        hint="Stands where its tenant sees it and in the audit trail.",
    )
    return ask(request, step, act)
