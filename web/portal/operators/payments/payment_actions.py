"""Actions of operators on stuck payments and top-ups: mark as not collected."""

from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.models import Payment, PaymentStatus, TopUp
from billing.services.payments import manual_settlements
from billing.services.payments.gateway_transactions import GatewayTransactions, TransactionRow
from billing.services.payments.payment_collection import PAYMENTS
from billing.services.payments.topups.topup_collection import TOPUPS
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    find_row,
    operator_page,
)


@operator_page("payment.mark_failed", methods=SAFE_OR_POST)
def mark_payment_failed(request: OperatorRequest, pk: str) -> HttpResponse:
    """Mark a payment as not collected; a reason is required."""
    rows = Payment.objects.select_related("invoice", "tenant")
    payment = find_row(rows, pk, _("Payment"), fix=_("Select it from the list on the System page."))
    then = _(
        "The invoice becomes due again. The tenant can pay it, and automatic collection starts a new"
        " payment soon. This payment is not retried."
    )
    return _confirm_mark_failed(
        request,
        PAYMENTS,
        payment,
        str(payment.invoice),
        _("{invoice} is due again").format(invoice=payment.invoice),
        then,
    )


@operator_page("topup.mark_failed", methods=SAFE_OR_POST)
def mark_topup_failed(request: OperatorRequest, pk: str) -> HttpResponse:
    """Mark a top-up as not collected; a reason is required."""
    rows = TopUp.objects.select_related("tenant")
    topup = find_row(rows, pk, _("Top-up"), fix=_("Select it from the list on the System page."))
    then = _("The wallet can be topped up again with a new top-up. This top-up is not retried.")
    return _confirm_mark_failed(request, TOPUPS, topup, "the top-up", _("the wallet can be topped up"), then)


def _confirm_mark_failed(
    request: OperatorRequest,
    transactions: GatewayTransactions[TransactionRow],
    row: TransactionRow,
    what: str,
    done: str,
    then: str,
) -> HttpResponse:
    def act(why: str) -> str:
        found = manual_settlements.settle_as_not_taken(transactions, row, why=why, actor=request.actor, now=request.now)
        if found.status == PaymentStatus.DECLINED:
            return _("Marked as failed: {what}; {done}.").format(what=what, done=done)
        return _("Waiting for the payment gateway ({gateway}) to confirm; {done} after that.").format(
            gateway=row.gateway, done=done
        )

    step = Confirmation(
        title=_("Mark {what} of {tenant_name} as failed?").format(what=what, tenant_name=row.tenant.name),
        verb=_("Mark as failed"),
        back=reverse("ops-system"),
        lines=(
            _(
                "First search for {row_pk} at the payment gateway ({gateway}). If it was charged there, "
                "marking it as failed here charges it a second time."
            ).format(row_pk=row.pk, gateway=row.gateway),
            _(
                "The payment gateway ({gateway}) is contacted first: an open charge there is cancelled, "
                "so that nobody pays it later. If it was charged, the payment is recorded; "
                "while the gateway does not respond, the payment stays open."
            ).format(gateway=row.gateway)
            if transactions.uses_current_gateway(row)
            else _(
                "The payment gateway ({gateway}) is no longer configured here. "
                "If it may come back, configure it again instead."
            ).format(gateway=row.gateway),
            then,
        ),
        danger=True,
        hint=_("Visible to the tenant and recorded in the audit log."),
    )
    return confirm_action(request, step, act)
