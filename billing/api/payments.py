"""Payments: each attempt to collect an invoice, and what came of it."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request

from billing.api.amounts import MoneyOut, money
from billing.models import Payment, PaymentDispute, PaymentRefund, PaymentStatus
from tenants.api.filters import Filter
from tenants.api.views import TenantViewSet


class DisputeOut(serializers.ModelSerializer[PaymentDispute]):
    """What the cardholder told their bank about a payment. It changes neither payment nor invoice."""

    amount = serializers.SerializerMethodField()

    class Meta:
        model = PaymentDispute
        fields = ("id", "status", "reason", "amount", "opened_at", "seen_at")

    @extend_schema(responses=MoneyOut)
    def get_amount(self, dispute: PaymentDispute) -> dict[str, str]:
        return money(dispute.minor, dispute.payment.currency)


class RefundOut(serializers.ModelSerializer[PaymentRefund]):
    """Money of a payment that went back to where it came from."""

    amount = serializers.SerializerMethodField()

    class Meta:
        model = PaymentRefund
        fields = ("id", "status", "amount", "made_at", "seen_at")

    @extend_schema(responses=MoneyOut)
    def get_amount(self, refund: PaymentRefund) -> dict[str, str]:
        return money(refund.minor, refund.payment.currency)


class PaymentOut(serializers.ModelSerializer[Payment]):
    """One attempt. A pending one is settled by itself; a stuck one goes on when its invoice is paid once more.

    A settled one, succeeded or declined, never changes; the next attempt is another.
    """

    invoice = serializers.CharField(source="invoice_id")
    amount = serializers.SerializerMethodField()
    reference = serializers.CharField(help_text="How the gateway calls it, once it succeeded.")
    code = serializers.CharField(help_text="Why it was declined or is stuck, for programs.")
    reason = serializers.CharField(help_text="Why it was declined or is stuck, for people.")
    automatic = serializers.BooleanField(help_text="Nobody asked for it.")
    tries = serializers.IntegerField(help_text="How often the gateway was asked.")
    trouble = serializers.CharField(help_text="Why a pending one has no answer yet, for people.")
    stuck_at = serializers.DateTimeField(
        allow_null=True, help_text="Since when it waits for a person; it is not asked for by itself."
    )
    disputes = DisputeOut(many=True)
    refunds = RefundOut(many=True)
    next_try_at = serializers.DateTimeField(
        source="due_at", allow_null=True, help_text="When the gateway is asked next, the same payment."
    )

    class Meta:
        model = Payment
        fields = (
            "id",
            "invoice",
            "status",
            "amount",
            "gateway",
            "automatic",
            "reference",
            "code",
            "reason",
            "opened_at",
            "settled_at",
            "next_try_at",
            "stuck_at",
            "tries",
            "trouble",
            "disputes",
            "refunds",
        )

    @extend_schema(responses=MoneyOut)
    def get_amount(self, payment: Payment) -> dict[str, str]:
        return money(payment.minor, payment.currency)


class Payments(ListModelMixin, RetrieveModelMixin, TenantViewSet):
    """Payments are the whole tenant's, as its invoices are. One is opened by paying an invoice."""

    serializer_class = PaymentOut
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    filters = {
        "invoice": Filter("invoice_id"),
        "status": Filter("status", choices=tuple(PaymentStatus.values)),
    }
    actions_needed = {"list": "billing.read", "retrieve": "billing.read"}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action is not None:  # else the method is not one of ours, which is said later
            self.allow()

    def get_queryset(self) -> QuerySet[Payment]:
        return self.visible(Payment.objects.prefetch_related("disputes", "refunds"))
