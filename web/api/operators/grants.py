"""Operators' API of all tenants' grants."""

from typing import Any

from rest_framework import serializers

from billing.models import Grant
from billing.services.funds.grants import new_grants
from billing.services.funds.grants.new_grants import GrantTerms
from broker.models import Offering
from ports import ids
from tenants.models import Project, Tenant
from tenants.services.errors import InvalidValue
from web.api.amounts import require_amount
from web.api.grant_serializers import CreditOut
from web.api.grants import GrantRows
from web.api.operators.base_views import TENANT_FILTER, CrossTenantViewSet, OperatorAct, TenantNamed, tenant_or_missing
from web.api.operators.withdrawals import GrantChangeMixin
from web.api.serializer_fields import StrictSerializer


class OperatorCreditOut(TenantNamed, CreditOut):
    """A grant and its tenant."""

    more = ("given_by",)


class GrantCreate(StrictSerializer):
    """Credit of a tenant, in its currency; empty fields restrict nothing."""

    tenant = serializers.CharField(max_length=40)
    amount = serializers.CharField(max_length=20, help_text="For example 100.00.")
    reason = serializers.CharField(max_length=200, help_text="Visible to the tenant.")
    project = serializers.CharField(max_length=40, default="", allow_blank=True)
    offering = serializers.CharField(max_length=40, default="", allow_blank=True)
    priority = serializers.IntegerField(
        min_value=0,
        max_value=new_grants.MAX_PRIORITY,
        default=new_grants.DEFAULT_PRIORITY,
        help_text="Grants of a lower number are used first.",
    )
    expires_at = serializers.DateTimeField(allow_null=True, default=None, help_text="Null: no expiry.")


class OperatorGrantViewSet(GrantChangeMixin, GrantRows, CrossTenantViewSet):
    """Current and past credit of tenants."""

    area = "billing"
    serializer_class, audit_action = OperatorCreditOut, "grants"
    filters = TENANT_FILTER

    @OperatorAct(GrantCreate)
    def create(self, body: dict[str, Any]) -> Grant:
        """Grant credit to a tenant."""
        tenant = tenant_or_missing(body["tenant"])
        project, offering = self._scope_of(tenant, body)
        minor = require_amount("amount", body["amount"], tenant.currency)
        terms = GrantTerms(minor, body["reason"], project, offering, body["priority"], body["expires_at"])
        return new_grants.give_grant(tenant, terms, idem=f"api {ids.new('gra')}", **self.by)

    def _scope_of(self, tenant: Tenant, body: dict[str, Any]) -> tuple[Project | None, Offering | None]:
        with self.read_scope():
            project = Project.objects.filter(pk=body["project"], tenant=tenant).first()
        offering = Offering.objects.filter(pk=body["offering"]).first()
        for name, found in (("project", project), ("offering", offering)):
            if body[name] and found is None:
                raise InvalidValue(name, f"The {name} was not found.", fix="Copy its ID, or leave it empty.")
        return project, offering
