"""Operators' API of all tenants' payments, top-ups, and refunds to payment cards."""

from typing import Any, ClassVar

from rest_framework import serializers

from billing.models import Payment, PaymentStatus, Refund
from billing.services.payments import manual_settlements
from billing.services.payments.gateway_transactions import GatewayTransactions
from billing.services.payments.payment_collection import PAYMENTS
from billing.services.payments.refunds import refund_creation
from billing.services.payments.topups.topup_collection import TOPUPS
from web.api.amounts import require_amount
from web.api.base_views import OLDEST_FIRST
from web.api.operators.base_views import (
    TENANT_FILTER,
    CrossTenantViewSet,
    NamedOut,
    OperatorAct,
    ReasonIn,
    TenantNamed,
    require_field,
)
from web.api.payments import STATUS_FILTER, GatewayTransactionOut, PaymentOut, PaymentRows
from web.api.serializer_fields import StrictSerializer
from web.api.topups import TopUpOut, TopUpRows
from web.http.filters import QueryFilter


class FailureIn(ReasonIn):
    status = serializers.ChoiceField(choices=[PaymentStatus.DECLINED.value], help_text="Target state.")


class CollectionViewSet(CrossTenantViewSet):
    """Base of payments and top-ups, of which operators mark stuck ones as failed."""

    transactions: ClassVar[GatewayTransactions[Any]]
    sorts = OLDEST_FIRST

    @OperatorAct(
        FailureIn,
        description=(
            "Mark it as failed: its gateway charged nothing. If that gateway is configured, it is contacted first and "
            "any open charge is cancelled; the status is pending until then, and succeeded if the money was charged. "
            "409 unless it is stuck, or while the gateway may still respond."
        ),
    )
    def partial_update(self, row: Any, body: dict[str, Any]) -> Any:
        """Settle it by hand."""
        require_field(body, "status")
        why = require_field(body, "reason")
        return manual_settlements.settle_as_not_taken(self.transactions, row, why=why, **self.by)


class OperatorRefundOut(GatewayTransactionOut):
    """A refund to the payment card that was charged.

    A refund that was returned is on the tenant's balance again.
    """

    tenant = NamedOut()
    payment = serializers.CharField(source="payment_id")
    refund_reason = serializers.CharField(source="why", help_text="Reason for the refund.")
    last_error = serializers.CharField(help_text="Why a pending refund is not settled yet, for people.")

    class Meta:
        model = Refund
        fields = (
            *("tenant", "id", "payment", "status", "amount", "gateway", "refund_reason", "reference", "code", "reason"),
            *("last_error", "opened_at", "settled_at", "returned_at"),
        )


class RefundRetry(StrictSerializer):
    status = serializers.ChoiceField(choices=[PaymentStatus.PENDING.value], help_text="Target state.")


class OperatorRefundViewSet(CrossTenantViewSet):
    """Refunds of all tenants; those that need attention are `status=stuck`."""

    area = "billing"
    serializer_class, audit_action = OperatorRefundOut, "payments"
    rows = Refund.objects.select_related("tenant", "payment__invoice")
    sorts = OLDEST_FIRST
    filters = TENANT_FILTER | {"payment": QueryFilter("payment_id")} | STATUS_FILTER

    @OperatorAct(RefundRetry)
    def partial_update(self, refund: Refund, body: dict[str, Any]) -> Refund:
        """Retry a stuck refund."""
        require_field(body, "status")
        refund_creation.retry_refund(refund, **self.by)
        return refund


class OperatorPaymentOut(TenantNamed, PaymentOut):
    """A payment and its tenant."""

    invoice_number = serializers.CharField(source="invoice.__str__")

    class Meta(PaymentOut.Meta):
        fields = ("invoice_number", *PaymentOut.Meta.fields)  # type: ignore[assignment]


class RefundCreate(ReasonIn):
    amount = serializers.CharField(max_length=20, help_text="Amount in the payment's currency, for example 12.50.")
    refunded = serializers.CharField(max_length=20, help_text="Refunded so far as you saw it; prevents doing it twice.")


class OperatorPaymentViewSet(PaymentRows, CollectionViewSet):
    """Payments of all tenants; those that need attention are `status=stuck`."""

    area = "billing"
    serializer_class, audit_action, transactions = OperatorPaymentOut, "payments", PAYMENTS
    filters = TENANT_FILTER | PaymentRows.filters

    @OperatorAct(
        RefundCreate,
        answer=OperatorRefundOut,
        rows=OperatorRefundViewSet.rows,
        creates=True,
        description=(
            "Refund a payment to its payment card, from the tenant's balance: at most the charged amount minus "
            "earlier refunds, and at most the credited amount of its invoice. 409 while another refund is in "
            "progress, or if more was refunded than `refunded`."
        ),
    )
    def refund(self, payment: Payment, body: dict[str, Any]) -> Refund:
        """Refund a payment."""
        return refund_creation.open_refund(
            payment,
            minor=require_amount("amount", body["amount"], payment.currency),
            seen=require_amount("refunded", body["refunded"], payment.currency),
            why=body["reason"],
            **self.by,
        )


class OperatorTopUpOut(TenantNamed, TopUpOut):
    """A top-up and its tenant."""


class OperatorTopUpViewSet(TopUpRows, CollectionViewSet):
    """Top-ups of all tenants; those that need attention are `status=stuck`."""

    area = "billing"
    serializer_class, audit_action, transactions = OperatorTopUpOut, "topups", TOPUPS
    filters = TENANT_FILTER | TopUpRows.filters
