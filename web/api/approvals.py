"""API of approvals: waiting requests, decisions about them, and limits."""

from decimal import Decimal
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_serializer
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.domain.approvals import Approver, LaunchLimits
from billing.models import ApprovalLimit, ApprovalRequest, ApprovalState
from billing.models.approvals import MAX_REASON_LENGTH
from billing.services.approvals import approval_decisions, approval_limits, approval_requests
from broker.models import Lease
from broker.services.leases.lease_arrays import MAX_SIZE
from broker.services.leases.lease_requests import LeaseRequest
from tenants.models import Tenant
from tenants.services.errors import InvalidValue, ObjectNotFound
from web.api.amounts import AmountField, MoneyOut, money_out, require_amount
from web.api.base_views import ETagViewSet, RowViewSet, TenantViewSet, WholeTenantViewSet, needs, validated_body
from web.api.lease_serializers import MAX_INTEGER, LeaseCreate, RequesterOut
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent

MILLI, MAX_AMOUNT_LENGTH = 1000, 20


@extend_schema_field(OpenApiTypes.DOUBLE)
class GpuCountField(serializers.DecimalField):
    """Number of GPUs; slices count by their part."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_digits=9, decimal_places=3, **options)

    def validate_precision(self, value: Decimal) -> Decimal:
        if value < 0:
            raise serializers.ValidationError("Must not be negative.", "min_value")
        return super().validate_precision(value)


class ApprovalRequestOut(serializers.ModelSerializer[ApprovalRequest]):
    """A launch, extension or start that needs approval, and what became of it."""

    project = serializers.CharField(source="project_id")
    offering = serializers.CharField(source="offering_id")
    max_cost = AmountField("cost_minor", help_text="What is approved: the most it may cost, before tax.")
    gpu_count = serializers.SerializerMethodField(help_text="GPUs; slices count by their part.")
    lease = serializers.CharField(
        source="lease_id", allow_null=True, help_text="The lease to extend or start, or the one launched."
    )
    array = serializers.CharField(source="array_id", allow_null=True, help_text="The array launched.")
    requested_by = serializers.SerializerMethodField()
    waits_for = serializers.SerializerMethodField(help_text="Whose approval is missing: `tenant`, `operator`.")

    class Meta:
        model = ApprovalRequest
        fields = ("id", "kind", "state", "name", "project", "offering", "quantity", "array_size", "more_s", "lease",
                  "array", "max_cost", "gpu_count", "duration_s", "exceeded", "note", "requested_by", "created_at",
                  "expires_at", "waits_for", "tenant_approved_at", "tenant_approved_by", "operator_approved_at",
                  "operator_approved_by", "decided_at", "decided_by", "reason")  # fmt: skip

    def get_gpu_count(self, request: ApprovalRequest) -> float:
        return request.milli_gpus / MILLI

    @extend_schema_field(RequesterOut)
    def get_requested_by(self, request: ApprovalRequest) -> dict[str, str]:
        """Return who asked."""
        return {"id": request.requested_by, "label": request.requested_by_label}

    def get_waits_for(self, request: ApprovalRequest) -> list[str]:
        return [each.value for each in Approver if request.waits_for(each)]


class LaunchForApproval(LeaseCreate):
    """Request body of a lease, and of how many equal ones."""

    quote = None  # type: ignore[assignment]  # DRF's way to omit a field: approval cites a quote of its own
    array_size = serializers.IntegerField(min_value=1, max_value=MAX_SIZE, default=1, help_text="1: a single lease.")


class ApprovalRequestCreate(StrictSerializer):
    """A launch, or a lease to extend (`more_s`) or start."""

    launch = LaunchForApproval(required=False)
    lease = serializers.CharField(max_length=40, required=False)
    more_s = serializers.IntegerField(min_value=1, max_value=MAX_INTEGER, required=False)
    note = serializers.CharField(max_length=MAX_REASON_LENGTH, required=False, default="", allow_blank=True)


class ApprovalDecision(StrictSerializer):
    reason = serializers.CharField(
        max_length=MAX_REASON_LENGTH,
        required=False,
        default="",
        allow_blank=True,
        help_text="Message to whoever asked; required to decline.",
    )


class ApprovalRows(RowViewSet):
    """Requests for approval, as tenants and operators list them."""

    rows = ApprovalRequest.objects.select_related("project")
    filters = {
        "state": QueryFilter("state", choices=tuple(ApprovalState.values)),
        "project": QueryFilter("project_id"),
        "lease": QueryFilter("lease_id"),
    }


class ApprovalRequestViewSet(ApprovalRows, ListModelMixin, TenantViewSet):
    """Launches that exceed a limit, in the order of their requests."""

    serializer_class = ApprovalRequestOut
    project_field = "project"
    actions_needed = (
        needs("approvals.read", "list", "retrieve")
        | needs("leases.write", "create", "withdraw")
        | needs("approvals.write", "approve", "decline")
    )

    def retrieve(self, request: Request, pk: str) -> Response:
        """Return one."""
        return Response(self.get_serializer(self.get_object()).data)

    @extend_schema(request=ApprovalRequestCreate, responses={201: ApprovalRequestOut})
    @idempotent(secret=("launch",))
    def create(self, request: Request) -> Response:
        """Ask for approval of a launch, extension or start that was refused as `approval-required`.

        Once approved it runs as whoever asked, for at most the cost that was asked for.
        """
        body = validated_body(ApprovalRequestCreate, request)
        if "launch" not in body and "lease" not in body:
            raise InvalidValue("launch", "Nothing was sent to approve.", fix="Send `launch`, or `lease`.")
        made = self._launch(body) if "launch" in body else self._of_lease(body)
        return Response(
            self.get_serializer(made).data, status=201, headers={"Location": f"/api/v1/approval-requests/{made.pk}"}
        )

    @extend_schema(request=ApprovalDecision, responses=ApprovalRequestOut)
    @action(detail=True, methods=["post"])
    @idempotent()
    def approve(self, request: Request, pk: str) -> Response:
        """Approve it; once nobody's approval is missing, it is launched."""
        return self._decide(approval_decisions.approve, request)

    @extend_schema(request=ApprovalDecision, responses=ApprovalRequestOut)
    @action(detail=True, methods=["post"])
    @idempotent()
    def decline(self, request: Request, pk: str) -> Response:
        """Decline it, with a reason."""
        return self._decide(approval_decisions.decline, request)

    @extend_schema(request=None, responses=ApprovalRequestOut)
    @action(detail=True, methods=["post"])
    @idempotent()
    def withdraw(self, request: Request, pk: str) -> Response:
        """Withdraw what you asked for."""
        found = self.get_object()
        self.allow(found.project.path)
        return self._shown(approval_decisions.withdraw(found, **self.by))

    def _decide(self, act: Any, request: Request) -> Response:
        found = self.get_object()
        self.allow(found.project.path)
        reason = validated_body(ApprovalDecision, request)["reason"]
        return self._shown(act(found, approver=Approver.TENANT, reason=reason, **self.by))

    def _shown(self, row: ApprovalRequest) -> Response:
        return Response(self.get_serializer(self.rows.get(pk=row.pk)).data)

    def _launch(self, body: dict[str, Any]) -> ApprovalRequest:
        wanted = dict(body["launch"])
        if "lease" in body or "more_s" in body:
            raise InvalidValue("lease", "Both a launch and a lease were sent.", fix="Send one of the two.")
        project, size = self.project_for(wanted.pop("project")), wanted.pop("array_size")
        return approval_requests.request_launch(
            LeaseRequest(offering_id=wanted.pop("offering"), **wanted),
            project=project,
            array_size=size,
            note=body["note"],
            **self.by,
        )

    def _of_lease(self, body: dict[str, Any]) -> ApprovalRequest:
        rows = Lease.objects.filter(tenant=self.request.tenant).select_related("offering", "project__tenant")
        lease = rows.filter(pk=body["lease"]).first()
        if lease is None or not self.request.roles.may("leases.read", lease.project.path):
            raise ObjectNotFound("The lease was not found.", fix="Send the ID of a lease as `lease`.")
        self.allow(lease.project.path)
        if "more_s" in body:
            return approval_requests.request_extension(lease, more_s=body["more_s"], note=body["note"], **self.by)
        return approval_requests.request_start(lease, note=body["note"], **self.by)


@extend_schema_serializer(many=False)
class ApprovalLimitsOut(serializers.Serializer[Any]):
    """Limits of one launch above which it needs approval; null: none."""

    max_cost = MoneyOut(allow_null=True)
    max_gpus = serializers.FloatField(allow_null=True)
    max_duration_s = serializers.IntegerField(allow_null=True)


@extend_schema_serializer(many=False)
class TenantApprovalLimitsOut(ApprovalLimitsOut):
    """Limits that the tenant's owners set, and those of operators."""

    by_operators = ApprovalLimitsOut()


class ApprovalLimitsIn(StrictSerializer):
    max_cost = serializers.CharField(
        max_length=MAX_AMOUNT_LENGTH, allow_null=True, help_text="Amount in the tenant's currency; null: no limit."
    )
    max_gpus = GpuCountField(allow_null=True)
    max_duration_s = serializers.IntegerField(min_value=0, max_value=MAX_INTEGER, allow_null=True)


def limits_out(row: ApprovalLimit) -> dict[str, Any]:
    """Return limits as the API shows them."""
    return {
        "max_cost": None if row.max_minor is None else money_out(row.max_minor, row.currency),
        "max_gpus": None if row.max_milli_gpus is None else row.max_milli_gpus / MILLI,
        "max_duration_s": row.max_duration_s,
    }


def limits_in(body: dict[str, Any], tenant: Tenant, approver: Approver) -> LaunchLimits:
    """Return the limits of a request body, or raise InvalidValue."""
    cost, gpus = body["max_cost"], body["max_gpus"]
    return LaunchLimits(
        approver,
        None if cost is None else require_amount("max_cost", cost, tenant.currency),
        None if gpus is None else int(gpus * MILLI),
        body["max_duration_s"],
    )


class ApprovalLimitsViewSet(WholeTenantViewSet):
    """Limits of the whole tenant."""

    serializer_class = TenantApprovalLimitsOut
    pagination_class = None
    changing = ("replace",)  # needs If-Match
    rows = ApprovalLimit.objects.all()
    actions_needed = needs("approvals.read", "list") | needs("approvals.write", "replace")

    @extend_schema(responses=TenantApprovalLimitsOut, filters=False)
    def list(self, request: Request) -> Response:
        """Return the limits, with their ETag."""
        return self._limits_response()

    @extend_schema(request=ApprovalLimitsIn, responses=TenantApprovalLimitsOut)
    def replace(self, request: Request) -> Response:
        """Set the limits of your tenant; needs If-Match. Those of operators stay."""
        tenant = self.request.tenant
        ETagViewSet.match(request, approval_limits.limits_of(tenant, Approver.TENANT))
        wanted = validated_body(ApprovalLimitsIn, request)
        approval_limits.set_limits(tenant, limits_in(wanted, tenant, Approver.TENANT), **self.by)
        return self._limits_response()

    def _limits_response(self) -> Response:
        tenant = self.request.tenant
        own = approval_limits.limits_of(tenant, Approver.TENANT)
        theirs = approval_limits.limits_of(tenant, Approver.OPERATOR)
        body = {**limits_out(own), "by_operators": limits_out(theirs)}
        return Response(TenantApprovalLimitsOut(body).data, headers={"ETag": f'"{own.version}"'})
