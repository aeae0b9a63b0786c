"""Operators' API of all tenants' disputes, which they answer."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from billing.models import Dispute, DisputeStatus
from billing.models.disputes import MAX_REASON_LENGTH
from billing.services.invoicing.disputes import dispute_answers, dispute_requests, disputed_usage
from web.api.disputes import MAX_AMOUNT_LENGTH, ChargeDisputeOut, DisputeRows
from web.api.operators.base_views import TENANT_FILTER, CrossTenantViewSet, OperatorAct, TenantNamed, require_field
from web.api.serializer_fields import StrictSerializer

MAX_LEASES = 200


class OperatorDisputeOut(TenantNamed, ChargeDisputeOut):
    """A dispute and its tenant."""


class DisputedLeaseOut(serializers.Serializer[disputed_usage.DisputedUsage]):
    """Lease on the disputed line: charged period and unit-seconds.

    Each slice counts for itself.
    """

    lease = serializers.CharField()
    name = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    unit_seconds = serializers.IntegerField(source="seconds")


class OperatorDisputeDetailOut(OperatorDisputeOut):
    """A dispute, its tenant, and the leases on its line."""

    leases = serializers.SerializerMethodField(help_text=f"Most seconds first, {MAX_LEASES} at most.")

    class Meta(ChargeDisputeOut.Meta):
        fields = (*ChargeDisputeOut.Meta.fields, "leases")  # type: ignore[assignment]

    @extend_schema_field(DisputedLeaseOut(many=True))
    def get_leases(self, dispute: Dispute) -> Any:
        found: Any = disputed_usage.usage_on_line(dispute.line, most=MAX_LEASES)
        return DisputedLeaseOut(found, many=True).data


class DisputeAnswer(StrictSerializer):
    status = serializers.ChoiceField(choices=[DisputeStatus.ACCEPTED.value, DisputeStatus.DECLINED.value])
    amount = serializers.CharField(
        max_length=MAX_AMOUNT_LENGTH,
        required=False,
        help_text="Amount to credit before tax if accepted. Default: the full disputed amount.",
    )
    answer = serializers.CharField(
        max_length=MAX_REASON_LENGTH,
        required=False,
        default="",
        allow_blank=True,
        help_text="Message to the tenant; required to decline.",
    )


class OperatorDisputeViewSet(DisputeRows, CrossTenantViewSet):
    """Disputed lines of final invoices."""

    area = "billing"
    serializer_class, audit_action = OperatorDisputeOut, "disputes"
    filters = TENANT_FILTER | DisputeRows.filters

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        return OperatorDisputeOut if self.action == "list" else OperatorDisputeDetailOut

    @OperatorAct(DisputeAnswer)
    def partial_update(self, dispute: Dispute, body: dict[str, Any]) -> Dispute:
        """Answer it for good: credit all or part of it, or decline with a reason."""
        answer = body.get("answer", "")
        if require_field(body, "status") != DisputeStatus.ACCEPTED:
            return dispute_answers.decline_dispute(dispute, answer=answer, **self.by)
        minor = dispute_requests.parse_optional_amount(body.get("amount"), dispute.currency)
        return dispute_answers.accept_dispute(dispute, minor=minor, answer=answer, **self.by)
