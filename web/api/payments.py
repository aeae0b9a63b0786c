"""API of payments: attempts to collect an invoice, and their outcomes."""

from typing import Any

from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin

from billing.models import Payment, PaymentDispute, PaymentRefund, PaymentStatus
from web.api.amounts import AmountField
from web.api.base_views import RowViewSet, WholeTenantViewSet, needs
from web.http.filters import QueryFilter


class ChargebackOut(serializers.ModelSerializer[PaymentDispute]):
    """Chargeback of a payment at the cardholder's bank.

    It changes neither payment nor invoice.
    """

    amount = AmountField(of="payment")

    class Meta:
        model = PaymentDispute
        fields = ("id", "status", "reason", "amount", "opened_at", "seen_at")


class PaymentRefundOut(serializers.ModelSerializer[PaymentRefund]):
    """Refund of a payment to its source."""

    amount = AmountField(of="payment")
    created_at = serializers.DateTimeField(source="made_at")

    class Meta:
        model = PaymentRefund
        fields = ("id", "status", "amount", "created_at", "seen_at")


class GatewayTransactionOut(serializers.ModelSerializer[Any]):
    """Base of payments, top-ups and refunds."""

    amount = AmountField()
    code = serializers.CharField(help_text="Why it was declined or is stuck, for programs.")
    reason = serializers.CharField(help_text="Why it was declined or is stuck, for people.")


class PaymentOut(GatewayTransactionOut):
    """An attempt to collect an invoice.

    A pending one settles by itself; a stuck one continues when its invoice is paid once more. A settled one,
    succeeded or declined, never changes; the next attempt is another payment.
    """

    invoice = serializers.CharField(source="invoice_id")
    reference = serializers.CharField(help_text="Reference at the gateway after success.")
    automatic = serializers.BooleanField(help_text="Started automatically.")
    attempt_count = serializers.IntegerField(source="attempts", help_text="Number of attempts.")
    last_error = serializers.CharField(help_text="Why a pending payment is not settled yet, for people.")
    stuck_at = serializers.DateTimeField(
        allow_null=True, help_text="When it became stuck; it is not retried automatically."
    )
    disputes = ChargebackOut(many=True)
    refunds = PaymentRefundOut(many=True)
    next_try_at = serializers.DateTimeField(source="due_at", allow_null=True, help_text="Next automatic retry.")

    class Meta:
        model = Payment
        fields = ("id", "invoice", "status", "amount", "gateway", "automatic", "reference", "code",
                  "reason", "opened_at", "settled_at", "next_try_at", "stuck_at", "attempt_count", "last_error",
                  "disputes", "refunds")  # fmt: skip


STATUS_FILTER = {"status": QueryFilter("status", choices=tuple(PaymentStatus.values))}


class PaymentRows(RowViewSet):
    """Payments, as tenants and operators list them."""

    rows = Payment.objects.select_related("tenant", "invoice").prefetch_related("disputes", "refunds")
    filters = {"invoice": QueryFilter("invoice_id")} | STATUS_FILTER


class PaymentViewSet(PaymentRows, ListModelMixin, RetrieveModelMixin, WholeTenantViewSet):
    """Payments of the whole tenant; paying an invoice creates one."""

    serializer_class = PaymentOut
    actions_needed = needs("billing.read", "list", "retrieve")
