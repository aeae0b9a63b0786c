"""Operators' API of refunds to payment cards."""

from typing import Any

from rest_framework import serializers

from billing.models import PaymentStatus, Refund
from billing.services.payments.refunds import refund_creation
from web.api.amounts import AmountField
from web.api.base_views import OLDEST_FIRST
from web.api.operators.base_views import TENANT_FILTER, CrossTenantViewSet, NamedOut, OperatorAct, ReasonIn
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter


class OperatorRefundOut(serializers.ModelSerializer[Refund]):
    """A refund to the payment card that was charged.

    A refund that was returned is on the tenant's balance again.
    """

    tenant = NamedOut()
    payment = serializers.CharField(source="payment_id")
    amount = AmountField()
    why = serializers.CharField(help_text="Reason for the refund.")
    code = serializers.CharField(help_text="Why it was declined or is stuck, for programs.")
    reason = serializers.CharField(help_text="Why it was declined or is stuck, for people.")
    last_error = serializers.CharField(help_text="Why a pending refund is not settled yet, for people.")

    class Meta:
        model = Refund
        fields = (
            *("tenant", "id", "payment", "status", "amount", "gateway", "why", "reference", "code", "reason"),
            *("last_error", "opened_at", "settled_at", "returned_at"),
        )


class RefundCreate(ReasonIn):
    amount = serializers.CharField(max_length=20, help_text="Amount in the payment's currency, for example 12.50.")
    seen = serializers.CharField(max_length=20, help_text="Refunded amount that you saw; prevents refunding twice.")


class RefundRetry(StrictSerializer):
    status = serializers.ChoiceField(choices=[PaymentStatus.PENDING.value], help_text="Target state.")


class OperatorRefundViewSet(CrossTenantViewSet):
    """Refunds of all tenants; those that need attention are `status=stuck`."""

    serializer_class, audit_action = OperatorRefundOut, "payments"
    rows = Refund.objects.select_related("tenant", "payment__invoice")
    sorts = OLDEST_FIRST
    filters = TENANT_FILTER | {
        "payment": QueryFilter("payment_id"),
        "status": QueryFilter("status", choices=tuple(PaymentStatus.values)),
    }

    @OperatorAct(RefundRetry)
    def retry(self, refund: Refund, body: dict[str, Any]) -> Refund:
        """Retry a stuck refund."""
        refund_creation.retry_refund(refund, **self.by)
        return refund
