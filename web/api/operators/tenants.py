"""Operators' API of tenants and of the audit log of all tenants."""

from typing import Any

from django.db.models import BooleanField, Case, Q, Value, When
from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from tenants.models import AuditEvent, QuotaKind, Tenant
from tenants.services.tenant_overview import TenantOverview, tenant_overviews
from web.api.audit_events import AuditEventRows
from web.api.operators.base_views import TENANT_FILTER, CrossTenantViewSet
from web.api.tenant_serializers import QUOTA_UNIT_TEXTS
from web.http.filters import QueryFilter


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

    members = serializers.SerializerMethodField()
    quotas = serializers.SerializerMethodField()

    class Meta:
        model = Tenant
        fields = ("id", "name", "time_zone", "currency", "created_at", "suspended_at", "members", "quotas")

    def _overview(self, tenant: Tenant) -> TenantOverview:
        return self.context["standings"][tenant.pk]  # type: ignore[no-any-return]

    def get_members(self, tenant: Tenant) -> int:
        """Return the number of its members."""
        return self._overview(tenant).members

    @extend_schema(responses=RootQuotaOut(many=True))
    def get_quotas(self, tenant: Tenant) -> Any:
        """Return the quotas of its root project."""
        its = self._overview(tenant).quotas
        return RootQuotaOut(
            [its[kind] for kind in QuotaKind.values if kind in its], many=True, context=self.context
        ).data


class OperatorTenantViewSet(CrossTenantViewSet):
    """Every tenant with its number of members and its root project's quotas."""

    serializer_class, rows, audit_action = OperatorTenantOut, Tenant.objects.all(), "tenants.list"
    sorts = ("name", "-name", "id", "-id", "created_at", "-created_at")
    search_in = ("name",)
    filters = {"suspended": QueryFilter("suspended_at__isnull", "flag_not"), "currency": QueryFilter("currency")}

    def prepare(self, rows: list[Any]) -> list[Any]:
        self.beside = {"standings": tenant_overviews(rows)}
        return rows


class OperatorAuditEventViewSet(AuditEventRows, CrossTenantViewSet):
    """Audit log of all tenants and of the operators, newest first; append-only."""

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
