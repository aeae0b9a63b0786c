"""Operators' API of all tenants' requests for approval, and of operators' limits."""

from typing import Any

from django.db.models import BooleanField, Case, Q, Value, When
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from billing.domain.approvals import Approver
from billing.models import ApprovalLimit, ApprovalRequest, ApprovalState
from billing.models.approvals import MAX_REASON_LENGTH
from billing.services.approvals import approval_decisions
from billing.services.approvals import approval_limits as limit_services
from tenants.models import Tenant
from web.api.approvals import (
    ApprovalLimitsIn,
    ApprovalLimitsOut,
    ApprovalRequestOut,
    ApprovalRows,
    limits_in,
    limits_out,
)
from web.api.base_views import OLDEST_FIRST
from web.api.operators.base_views import (
    TENANT_FILTER,
    CrossTenantViewSet,
    NamedOut,
    OperatorAct,
    TenantNamed,
)
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter

WAITS = Q(state=ApprovalState.WAITING, needs_operator=True, operator_approved_at=None)


class OperatorApprovalRequestOut(TenantNamed, ApprovalRequestOut):
    """A request for approval and its tenant."""


class OperatorApprovalDecision(StrictSerializer):
    reason = serializers.CharField(
        max_length=MAX_REASON_LENGTH, allow_blank=True, help_text="Message to the tenant; may be empty to approve."
    )


class OperatorApprovalRequestViewSet(ApprovalRows, CrossTenantViewSet):
    """Launches that exceed a limit, of all tenants."""

    area = "tenants"
    serializer_class, audit_action = OperatorApprovalRequestOut, "approvals"
    rows = ApprovalRequest.objects.select_related("project", "tenant").annotate(
        waits_for_operator=Case(When(WAITS, then=Value(True)), default=Value(False), output_field=BooleanField())
    )
    filters = TENANT_FILTER | ApprovalRows.filters | {"waits_for_operator": QueryFilter("waits_for_operator", "flag")}

    @OperatorAct(OperatorApprovalDecision)
    def approve(self, request: ApprovalRequest, body: dict[str, Any]) -> ApprovalRequest:
        """Approve it for the operators; once nobody's approval is missing, it is launched."""
        return approval_decisions.approve(request, approver=Approver.OPERATOR, reason=body["reason"], **self.by)

    @OperatorAct(OperatorApprovalDecision)
    def decline(self, request: ApprovalRequest, body: dict[str, Any]) -> ApprovalRequest:
        """Decline it, with a reason that the tenant reads."""
        return approval_decisions.decline(request, approver=Approver.OPERATOR, reason=body["reason"], **self.by)


class OperatorApprovalLimitsOut(serializers.ModelSerializer[ApprovalLimit]):
    """Limits of a tenant's launches, and who set them."""

    id = serializers.CharField(source="pk")
    tenant = NamedOut()
    limits = serializers.SerializerMethodField()

    class Meta:
        model = ApprovalLimit
        fields = ("id", "tenant", "set_by", "limits", "set_at", "set_by_label")

    @extend_schema_field(ApprovalLimitsOut)
    def get_limits(self, row: ApprovalLimit) -> Any:
        return ApprovalLimitsOut(limits_out(row)).data


LIMIT_ROWS = ApprovalLimit.objects.select_related("tenant")


class OperatorApprovalLimitsViewSet(CrossTenantViewSet):
    """Limits above which launches of tenants need approval; `POST /ops/tenants/{id}/approval-limits` sets them."""

    area = "tenants"
    serializer_class, audit_action = OperatorApprovalLimitsOut, "approval_limits"
    rows = LIMIT_ROWS
    sorts = OLDEST_FIRST
    filters = TENANT_FILTER | {"set_by": QueryFilter("set_by", choices=tuple(each.value for each in Approver))}


class TenantApprovalActs(CrossTenantViewSet):
    """What operators set about the approvals of a tenant."""

    @OperatorAct(ApprovalLimitsIn, answer=OperatorApprovalLimitsOut, rows=LIMIT_ROWS)
    def approval_limits(self, tenant: Tenant, body: dict[str, Any]) -> ApprovalLimit:
        """Set the operators' limits of its launches; null: no limit. Those of its owners stay."""
        return limit_services.set_limits(tenant, limits_in(body, tenant, Approver.OPERATOR), **self.by)
