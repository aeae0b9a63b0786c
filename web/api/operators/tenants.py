"""Operators' API of tenants and of the audit log of all tenants."""

from typing import Any

from django.db.models import BooleanField, Case, Q, Value, When
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import AccountStatus, PaymentTerms
from billing.services.funds.accounts import account_terms
from tenants.models import AuditEvent, Project, Quota, QuotaKind, Tenant
from tenants.services import quotas, rls, tenants
from tenants.services.tenant_overview import TenantOverview, tenant_overviews
from web.api.audit_events import AuditEventRows
from web.api.base_views import validated_body
from web.api.operators.approvals import TenantApprovalActs
from web.api.operators.base_views import TENANT_FILTER, CrossTenantViewSet, OperatorAct, require_field
from web.api.operators.new_tenants import NewTenantActs
from web.api.operators.payment_terms import OperatorPaymentTermsOut
from web.api.serializer_fields import StrictSerializer
from web.api.tenant_serializers import QUOTA_UNIT_TEXTS
from web.http.filters import QueryFilter

MAX_LIMIT = 10**18


class RootQuotaOut(serializers.Serializer[Any]):
    """A quota of the whole tenant, and what is used of it."""

    id = serializers.CharField()
    kind = serializers.ChoiceField(QuotaKind.choices)
    unit = serializers.SerializerMethodField()
    limit = serializers.IntegerField(source="soft_limit")
    used = serializers.SerializerMethodField()

    def get_unit(self, quota: Any) -> str:
        return QUOTA_UNIT_TEXTS[QuotaKind(quota.kind)]

    def get_used(self, quota: Any) -> int:
        return quota.used_at(self.context["view"].now)  # type: ignore[no-any-return]


class OperatorTenantOut(serializers.ModelSerializer[Tenant]):
    """A tenant as operators see it; a kind without a quota has no limit."""

    member_count = serializers.SerializerMethodField()
    quotas = serializers.SerializerMethodField()

    class Meta:
        model = Tenant
        fields = ("id", "name", "time_zone", "currency", "created_at", "suspended_at", "released_at", "founder",
                  "member_count", "quotas")  # fmt: skip

    def _overview(self, tenant: Tenant) -> TenantOverview:
        return self.context["standings"][tenant.pk]  # type: ignore[no-any-return]

    def get_member_count(self, tenant: Tenant) -> int:
        """Return the number of its members."""
        return self._overview(tenant).members

    @extend_schema_field(RootQuotaOut(many=True))
    def get_quotas(self, tenant: Tenant) -> Any:
        """Return the quotas of its root project."""
        its = self._overview(tenant).quotas
        return RootQuotaOut(
            [its[kind] for kind in QuotaKind.values if kind in its], many=True, context=self.context
        ).data


class TenantQuotasIn(StrictSerializer):
    """Quotas of the root project, in the units of `quotas`; null lifts one."""

    units = serializers.IntegerField(min_value=0, max_value=MAX_LIMIT, allow_null=True)
    gpu_seconds = serializers.IntegerField(min_value=0, max_value=MAX_LIMIT, allow_null=True)
    storage = serializers.IntegerField(min_value=0, max_value=MAX_LIMIT, allow_null=True)
    burn = serializers.IntegerField(min_value=0, max_value=MAX_LIMIT, allow_null=True)


class TenantOperatorChange(StrictSerializer):
    """What operators change of a tenant; to suspend it needs a reason."""

    suspended = serializers.BooleanField(help_text="A suspended tenant can read, and change nothing.")
    reason = serializers.CharField(max_length=500, help_text="Visible to the tenant.")
    quotas = TenantQuotasIn()


class PaymentTermsIn(StrictSerializer):
    payment_terms = serializers.ChoiceField(choices=PaymentTerms.choices)
    account_status = serializers.ChoiceField(choices=AccountStatus.choices)
    reason = serializers.CharField(max_length=500, help_text="Visible to the tenant.")


class OperatorTenantViewSet(NewTenantActs, TenantApprovalActs):
    """Every tenant with its number of members and its root project's quotas."""

    area = "tenants"
    serializer_class, rows, audit_action = OperatorTenantOut, Tenant.objects.all(), "tenants.list"
    sorts = ("name", "-name", "id", "-id", "created_at", "-created_at")
    search_in = ("name",)
    filters = {"suspended": QueryFilter("suspended_at__isnull", "flag_not"), "currency": QueryFilter("currency"),
               "released": QueryFilter("released_at__isnull", "flag_not")}  # fmt: skip

    def prepare(self, rows: list[Any]) -> list[Any]:
        self.beside = {"standings": tenant_overviews(rows)}
        return rows

    @OperatorAct(TenantOperatorChange, audit_action="tenants.change")
    def partial_update(self, tenant: Tenant, body: dict[str, Any]) -> Tenant:
        """Suspend or resume a tenant, and set or lift its quotas; omitted fields stay."""
        with rls.tenant_scope(tenant.pk):
            if "quotas" in body:
                root = Project.objects.get(tenant=tenant, parent=None)
                for kind, limit in body["quotas"].items():
                    self._set_quota(root, QuotaKind(kind), limit)
            if "suspended" in body:
                act = tenants.suspend if body["suspended"] else tenants.resume
                reason = require_field(body, "reason") if body["suspended"] else body.get("reason", "by an operator")
                act(tenant, why=reason, **self.by)
        return tenant

    def _set_quota(self, root: Project, kind: QuotaKind, limit: int | None) -> None:
        if limit is not None:
            quotas.set_limit(project=root, kind=kind, limit=limit, **self.by)
        elif quota := Quota.objects.select_related("project").filter(project=root, kind=kind).first():
            quotas.remove(quota, **self.by)

    @extend_schema(request=PaymentTermsIn, responses=OperatorPaymentTermsOut, filters=False)
    @action(detail=True, methods=["patch"], url_path="payment-terms", audit_action="payment_terms")
    def payment_terms(self, request: Request, pk: str) -> Response:
        """Set payment terms or account status; omitted fields stay."""
        with self.read_scope():
            tenant = self.find_row()
        body = validated_body(PaymentTermsIn, request, partial=True)
        with rls.tenant_scope(tenant.pk):
            present = account_terms.terms_of(tenant)
        changed = account_terms.set_account_terms(
            tenant,
            payment=body.get("payment_terms", present.payment),
            account_status=body.get("account_status", present.account_status),
            why=require_field(body, "reason"),
            **self.by,
        )
        changed.tenant = tenant
        return Response(OperatorPaymentTermsOut(changed).data)


class OperatorAuditEventViewSet(AuditEventRows, CrossTenantViewSet):
    """Audit log of all tenants and of the operators, newest first; append-only."""

    area = "system"
    audit_action = "audit"
    rows = AuditEvent.objects.annotate(
        is_visit=Case(
            When(Q(action__startswith="ops."), then=Value(True)), default=Value(False), output_field=BooleanField()
        )
    )
    sorts = ("-at", "at", "-id", "id")
    filters = (
        TENANT_FILTER
        | AuditEventRows.filters
        | {
            "actor_kind": QueryFilter("actor_kind", choices=("user", "service_account", "staff", "system")),
            "visits": QueryFilter("is_visit", "flag"),  # true: pages that operators viewed; false: changes
        }
    )
