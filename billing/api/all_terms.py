"""Terms of all tenants that have any of their own, for operators."""

from typing import ClassVar

from django.db.models import QuerySet
from rest_framework import serializers

from billing.models import PaymentTerms, TenantStanding, TenantTerms
from broker.api.all_leases import Named
from tenants.api.filters import Filter
from tenants.api.operators import AllTenants


class TermsSeenOut(serializers.ModelSerializer[TenantTerms]):
    """How a tenant pays and stands; one that is not in the list pays by invoice and stands well."""

    tenant = Named()

    class Meta:
        model = TenantTerms
        fields = ("tenant", "payment", "standing", "why", "since")


class OpsTerms(AllTenants):
    """Tenants that pay or stand otherwise than others, or did."""

    serializer_class, rows, visit = TermsSeenOut, TenantTerms, "terms"
    sorts: ClassVar[tuple[str, ...]] = ("id", "-id")
    filters = {
        "tenant": Filter("tenant_id"),
        "payment": Filter("payment", choices=tuple(PaymentTerms.values)),
        "standing": Filter("standing", choices=tuple(TenantStanding.values)),
    }

    def get_queryset(self) -> QuerySet[TenantTerms]:
        return TenantTerms.objects.select_related("tenant")
