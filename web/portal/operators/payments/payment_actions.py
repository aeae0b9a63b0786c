"""Actions of operators on stuck payments and top-ups: mark as not collected."""

from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from billing.models import Payment, PaymentStatus, TopUp
from billing.services.payments import manual_settlements
from billing.services.payments.gateway_transactions import GatewayTransactions, TransactionRow
from billing.services.payments.payment_collection import PAYMENTS
from billing.services.payments.topups.topup_collection import TOPUPS
from tenants.services.errors import ObjectNotFound
from tenants.services.rls import staff_scope
from web.portal.operators.page_context import Confirmation, OperatorRequest, confirm_action, operator_page


@require_http_methods(["GET", "HEAD", "POST"])
@operator_page("payment.mark_failed")
def mark_payment_failed(request: OperatorRequest, pk: str) -> HttpResponse:
    """Mark a payment as not collected; a reason is required."""
    with staff_scope():
        payment = Payment.objects.select_related("invoice", "tenant").filter(pk=pk).first()
    if payment is None:
        raise ObjectNotFound(f"Payment {pk!r} was not found.", fix="Select it from the list on the System page.")
    then = (
        "The invoice becomes due again. The tenant can pay it, and automatic collection starts a new"
        " payment soon. This payment is not retried."
    )
    return _ask_mark_failed(request, PAYMENTS, payment, str(payment.invoice), f"{payment.invoice} is due again", then)


@require_http_methods(["GET", "HEAD", "POST"])
@operator_page("topup.mark_failed")
def mark_topup_failed(request: OperatorRequest, pk: str) -> HttpResponse:
    """Mark a top-up as not collected; a reason is required."""
    with staff_scope():
        topup = TopUp.objects.select_related("tenant").filter(pk=pk).first()
    if topup is None:
        raise ObjectNotFound(f"Top-up {pk!r} was not found.", fix="Select it from the list on the System page.")
    then = "The wallet can be topped up again with a new top-up. This top-up is not retried."
    return _ask_mark_failed(request, TOPUPS, topup, "the top-up", "the wallet can be topped up", then)


def _ask_mark_failed(
    request: OperatorRequest,
    moving: GatewayTransactions[TransactionRow],
    row: TransactionRow,
    what: str,
    done: str,
    then: str,
) -> HttpResponse:
    def act(why: str) -> str:
        found = manual_settlements.settle_as_not_taken(moving, row, why=why, actor=request.actor, now=request.now)
        if found.status == PaymentStatus.DECLINED:
            return f"Marked as failed: {what}; {done}."
        return f"Waiting for {row.gateway} to confirm; {done} after that."

    step = Confirmation(
        title=f"Mark {what} of {row.tenant.name} as failed?",
        verb="Mark as failed",
        back=reverse("ops-system"),
        lines=(
            f"First search for {row.pk} in the records of {row.gateway}. If it was charged there, marking it as failed"
            " here charges it a second time.",
            f"{row.gateway} is configured here and is contacted first: an open charge there is cancelled,"
            " so that nobody pays it later. If it was charged, the payment is recorded; while the gateway does not"
            " respond, the payment stays open."
            if moving.asks_here(row)
            else f"{row.gateway} is no longer configured here. If it may come back, configure it again instead.",
            then,
        ),
        danger=True,
        hint="Visible to the tenant and recorded in the audit log.",
    )
    return confirm_action(request, step, act)
