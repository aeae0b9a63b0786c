"""Refund page: send money of a payment back to its payment card."""

from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.domain.money import InvalidAmount, Money, parse_amount
from billing.domain.refunds import RefundLimits
from billing.models import Payment, PaymentStatus, Refund
from billing.models.payments import UNSETTLED
from billing.services.payments.refunds import refund_creation
from billing.services.payments.refunds.refund_submission import REFUND_TRANSACTIONS
from tenants.services.errors import InvalidValue, ProblemError
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.operators.page_context import (
    POST,
    SAFE_OR_POST,
    OperatorRequest,
    find_row,
    form_page,
    operator_page,
    parse_seen_amount,
)


@operator_page("payment.refund", methods=SAFE_OR_POST)
def refund_payment(request: OperatorRequest, pk: str) -> HttpResponse:
    """Show the refundable amount of a payment; a POST starts a refund."""
    payment = _find_payment(pk)

    def refund() -> str:
        made = refund_creation.open_refund(
            payment,
            minor=_parse_amount(request.POST.get("amount", ""), payment.currency),
            seen=parse_seen_amount(request.POST.get("seen", "")),
            why=request.POST.get("reason", ""),
            actor=request.actor,
            now=request.now,
        )
        amount = Money(made.minor, made.currency)
        return _("{amount} left the balance. {gateway} is asked to refund it to the payment card.").format(
            amount=amount, gateway=made.gateway
        )

    return form_page(
        request,
        "operators/payments/refund.html",
        lambda _: build_refund_page(payment, request.now),
        refund,
        back=reverse("ops-payment-refund", args=[pk]),
    )


@dataclass(frozen=True, slots=True)
class RefundPage:
    """A payment, its refundable amount and its refunds."""

    payment: Payment
    limits: RefundLimits
    gateway_configured: bool  # its gateway is configured here
    rows: list[Refund]

    @property
    def charged_note(self) -> str:
        succeeded = self.payment.status == PaymentStatus.SUCCEEDED
        return _("by this payment") if succeeded else _("payment {status}").format(status=self.payment.status)

    @property
    def max_amount(self) -> str:
        return str(Money(self.limits.max_minor, self.limits.currency)).lstrip("€$£¥ ")

    @property
    def pending_refund(self) -> Refund | None:
        """Return the refund that is not settled yet."""
        return next((each for each in self.rows if each.status in UNSETTLED), None)

    @property
    def can_refund(self) -> bool:
        succeeded = self.payment.status == PaymentStatus.SUCCEEDED
        return self.gateway_configured and not self.pending_refund and succeeded and self.limits.max_minor > 0

    @property
    def calls(self) -> list[dict[str, str]]:
        return [operator_api_call(_("Refunds"), "ops/refunds", payment=self.payment.pk, limit=API_PAGE_SIZE)]


def build_refund_page(payment: Payment, now: datetime) -> RefundPage:
    """Load the refundable amount of a payment and its refunds."""
    return RefundPage(
        payment=payment,
        limits=refund_creation.refund_limits(payment, now=now),
        gateway_configured=REFUND_TRANSACTIONS.uses_current_gateway(payment),
        rows=list(payment.sent_back.order_by("-opened_at", "-pk")),
    )


@operator_page("refund.retry", methods=POST)
def retry_refund(request: OperatorRequest, pk: str) -> HttpResponse:
    """Retry a stuck refund at its gateway."""
    found = find_row(
        Refund.objects.select_related("payment__invoice"), pk, _("Refund"), fix=_("Open it from its payment.")
    )
    try:
        refund_creation.retry_refund(found, actor=request.actor, now=request.now)
    except ProblemError as problem:
        messages.error(request, problem.detail)
    else:
        messages.success(request, _("The refund through {gateway} is retried.").format(gateway=found.gateway))
    return redirect(reverse("ops-payment-refund", args=[found.payment_id]))


def _find_payment(pk: str) -> Payment:
    rows = Payment.objects.select_related("invoice", "tenant")
    return find_row(rows, pk, _("Payment"), fix=_("Open it from its invoice."))


def _parse_amount(text: str, currency: str) -> int:
    try:
        return parse_amount(text, currency)
    except InvalidAmount as error:
        raise InvalidValue("amount", str(error), fix=_("Enter an amount such as 12.50.")) from error
