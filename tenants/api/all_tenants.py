"""All tenants and the operators' own trail, for operators."""

from typing import Any

from django.db.models import BooleanField, Case, Q, QuerySet, Value, When
from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from tenants.api.filters import Filter
from tenants.api.operators import AllTenants
from tenants.api.serializers import UNITS, AuditOut
from tenants.models import AuditEvent, QuotaKind, Tenant
from tenants.services.roots import Standing, standings


class RootQuotaOut(serializers.Serializer[Any]):
    """A ceiling of the whole tenant, and what is taken of it."""

    id = serializers.CharField()
    kind = serializers.ChoiceField(QuotaKind.choices)
    unit = serializers.SerializerMethodField()
    limit = serializers.IntegerField(source="soft_limit")
    used = serializers.SerializerMethodField()

    def get_unit(self, quota: Any) -> str:
        return UNITS[QuotaKind(quota.kind)]

    def get_used(self, quota: Any) -> int:
        return quota.used_at(self.context["view"].now)  # type: ignore[no-any-return]


class TenantSeenOut(serializers.ModelSerializer[Tenant]):
    """A tenant as operators see it; a kind without a quota has no limit."""

    members = serializers.SerializerMethodField()
    quotas = serializers.SerializerMethodField()

    class Meta:
        model = Tenant
        fields = ("id", "name", "time_zone", "currency", "created_at", "suspended_at", "members", "quotas")

    def _standing(self, tenant: Tenant) -> Standing:
        return self.context["standings"][tenant.pk]  # type: ignore[no-any-return]

    def get_members(self, tenant: Tenant) -> int:
        """Return how many people it has."""
        return self._standing(tenant).members

    @extend_schema(responses=RootQuotaOut(many=True))
    def get_quotas(self, tenant: Tenant) -> Any:
        """Return the quotas of its root project."""
        its = self._standing(tenant).quotas
        return RootQuotaOut(
            [its[kind] for kind in QuotaKind.values if kind in its], many=True, context=self.context
        ).data


class OpsTenants(AllTenants):
    """Every tenant with its people and the quotas of its root project."""

    serializer_class, rows, visit = TenantSeenOut, Tenant, "tenants.list"
    sorts = ("name", "-name", "id", "-id", "created_at", "-created_at")
    search_in = ("name",)
    filters = {
        "suspended": Filter("suspended_at__isnull", "flag_not"),
        "currency": Filter("currency"),
    }

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "standings": getattr(self, "standings", {})}

    def paginate_queryset(self, queryset: Any) -> Any:
        page = super().paginate_queryset(queryset)
        self.standings = standings(page or ())
        return page

    def get_object(self) -> Tenant:
        tenant: Tenant = super().get_object()
        self.standings = standings([tenant])
        return tenant


class OpsAuditEvents(AllTenants):
    """The trail of all tenants and of the operators themselves, newest first. Rows are only ever added."""

    serializer_class, rows, visit = AuditOut, AuditEvent, "audit"
    sorts = ("-at", "at", "-id", "id")
    search_in = ("action", "actor_label", "subject_label")
    filters = {
        "tenant": Filter("tenant_id"),
        "action": Filter("action"),
        "actor": Filter("actor_id"),
        "actor_kind": Filter("actor_kind", choices=("user", "service_account", "staff", "system")),
        "subject": Filter("subject_id"),
        "visits": Filter("is_visit", "flag"),  # which pages operators looked at, or what was changed
        "at__gte": Filter("at__gte", "moment"),
        "at__lt": Filter("at__lt", "moment"),
    }

    def get_queryset(self) -> QuerySet[AuditEvent]:
        visit = Case(
            When(Q(action__startswith="ops."), then=Value(True)),
            default=Value(False),
            output_field=BooleanField(),
        )
        return AuditEvent.objects.annotate(is_visit=visit)
