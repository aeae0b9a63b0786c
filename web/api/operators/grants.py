"""Operators' API of all tenants' grants."""

from web.api.grant_serializers import CreditOut
from web.api.grants import GrantRows
from web.api.operators.base_views import TENANT_FILTER, CrossTenantViewSet, TenantNamed


class OperatorCreditOut(TenantNamed, CreditOut):
    """A grant and its tenant."""

    more = ("given_by",)


class OperatorGrantViewSet(GrantRows, CrossTenantViewSet):
    """Current and past credit of tenants."""

    serializer_class, audit_action = OperatorCreditOut, "grants"
    filters = TENANT_FILTER
