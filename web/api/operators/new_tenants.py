"""Operators' API of new tenants: create with an invited owner, release, set the currency."""

from typing import Any

from rest_framework import serializers

from billing.models import PaymentTerms
from billing.services.new_tenants import tenant_creation, tenant_currency, tenant_release
from billing.services.new_tenants.tenant_creation import WantedTenant
from tenants.domain.time_zones import UTC
from tenants.models import Tenant
from web.api.operators.base_views import CrossTenantViewSet, OperatorAct
from web.api.serializer_fields import NameField, StrictSerializer


class TenantCreate(StrictSerializer):
    name = NameField()
    owner_email = serializers.EmailField(max_length=254, help_text="Gets an invitation to become its owner.")
    country = serializers.CharField(
        max_length=2, required=False, default="", allow_blank=True, help_text="Two letters, such as DE."
    )
    currency = serializers.CharField(max_length=3, help_text="ISO 4217 code, such as EUR.")
    time_zone = NameField(max_length=60, required=False, default=UTC)
    payment_terms = serializers.ChoiceField(PaymentTerms.choices, required=False, default=PaymentTerms.INVOICE)


class TenantRelease(StrictSerializer):
    reason = serializers.CharField(max_length=500, help_text="Visible to the tenant and other operators.")
    payment_terms = serializers.ChoiceField(
        PaymentTerms.choices, required=False, default=PaymentTerms.INVOICE, help_text="How it pays from now on."
    )


class TenantCurrency(StrictSerializer):
    currency = serializers.CharField(max_length=3, help_text="ISO 4217 code, such as EUR.")


class NewTenantActs(CrossTenantViewSet):
    """What operators do with tenants that are new, or not there yet."""

    @OperatorAct(TenantCreate)
    def create(self, body: dict[str, Any]) -> Tenant:
        """Create a tenant and invite its owner by e-mail.

        It has no limits of new tenants.
        """
        tenant, _ = tenant_creation.create_for_owner(
            WantedTenant(body["name"], body["country"].upper(), body["currency"].upper(), body["time_zone"]),
            owner_email=body["owner_email"],
            payment=body["payment_terms"],
            **self.by,
        )
        return tenant

    @OperatorAct(TenantRelease)
    def release(self, tenant: Tenant, body: dict[str, Any]) -> Tenant:
        """Lift the limits of a new tenant, and set how it pays."""
        return tenant_release.release_tenant(tenant, why=body["reason"], payment=body["payment_terms"], **self.by)

    @OperatorAct(TenantCurrency)
    def currency(self, tenant: Tenant, body: dict[str, Any]) -> Tenant:
        """Change its currency, until something was charged, paid, granted or budgeted."""
        return tenant_currency.set_currency(tenant, currency=body["currency"].upper(), **self.by)
