"""Operators' API of all tenants' payments, which they refund or mark as failed."""

from typing import Any

from rest_framework import serializers

from billing.models import Payment, Refund
from billing.services.payments import manual_settlements
from billing.services.payments.payment_collection import PAYMENTS
from billing.services.payments.refunds import refund_creation
from web.api.amounts import require_amount
from web.api.base_views import OLDEST_FIRST
from web.api.operators.base_views import TENANT_FILTER, CrossTenantViewSet, OperatorAct, ReasonIn, TenantNamed
from web.api.operators.refunds import OperatorRefundOut, OperatorRefundViewSet, RefundCreate
from web.api.payments import PaymentOut, PaymentRows

MARK_FAILED_DESCRIPTION = (
    "Mark it as failed: its gateway charged nothing. If that gateway is configured, it is contacted first and any"
    " open charge is cancelled; the status is pending until then, and succeeded if the money was charged. 409 "
    "unless it is stuck, or while the gateway may still respond."
)


class OperatorPaymentOut(TenantNamed, PaymentOut):
    """A payment and its tenant."""

    invoice_number = serializers.CharField(source="invoice.__str__")

    class Meta(PaymentOut.Meta):
        fields = ("invoice_number", *PaymentOut.Meta.fields)  # type: ignore[assignment]


class OperatorPaymentViewSet(PaymentRows, CrossTenantViewSet):
    """Payments of all tenants; those that need attention are `status=stuck`."""

    serializer_class, audit_action = OperatorPaymentOut, "payments"
    sorts = OLDEST_FIRST
    filters = TENANT_FILTER | PaymentRows.filters

    @OperatorAct(ReasonIn, description=MARK_FAILED_DESCRIPTION)
    def mark_failed(self, payment: Payment, body: dict[str, Any]) -> Payment:
        """Settle it by hand."""
        return manual_settlements.settle_as_not_taken(PAYMENTS, payment, why=body["reason"], **self.by)

    @OperatorAct(
        RefundCreate,
        answer=OperatorRefundOut,
        rows=OperatorRefundViewSet.rows,
        description=(
            "Refund a payment to its payment card, from the tenant's balance: at most the charged amount minus "
            "earlier refunds, and at most the credited amount of its invoice. 409 while another refund is in "
            "progress, or if more was refunded than `seen`."
        ),
    )
    def refund(self, payment: Payment, body: dict[str, Any]) -> Refund:
        """Refund a payment."""
        return refund_creation.open_refund(
            payment,
            minor=require_amount("amount", body["amount"], payment.currency),
            seen=require_amount("seen", body["seen"], payment.currency),
            why=body["reason"],
            **self.by,
        )
