"""Operators' API of all tenants' top-ups, which they mark as failed."""

from typing import Any

from billing.models import TopUp
from billing.services.payments import manual_settlements
from billing.services.payments.topups.topup_collection import TOPUPS
from web.api.base_views import OLDEST_FIRST
from web.api.operators.base_views import TENANT_FILTER, CrossTenantViewSet, OperatorAct, ReasonIn, TenantNamed
from web.api.operators.payments import MARK_FAILED_DESCRIPTION
from web.api.topups import TopUpOut, TopUpRows


class OperatorTopUpOut(TenantNamed, TopUpOut):
    """A top-up and its tenant."""


class OperatorTopUpViewSet(TopUpRows, CrossTenantViewSet):
    """Top-ups of all tenants; those that need attention are `status=stuck`."""

    serializer_class, audit_action = OperatorTopUpOut, "topups"
    sorts = OLDEST_FIRST
    filters = TENANT_FILTER | TopUpRows.filters

    @OperatorAct(ReasonIn, description=MARK_FAILED_DESCRIPTION)
    def mark_failed(self, topup: TopUp, body: dict[str, Any]) -> TopUp:
        """Settle it by hand."""
        return manual_settlements.settle_as_not_taken(TOPUPS, topup, why=body["reason"], **self.by)
