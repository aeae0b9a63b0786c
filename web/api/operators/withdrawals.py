"""Credit that operators take back."""

from typing import Any

from rest_framework import serializers

from billing.models import Grant
from billing.services.funds.wallets import grant_withdrawals
from web.api.operators.base_views import CrossTenantViewSet, OperatorAct, require_field
from web.api.serializer_fields import StrictSerializer


class GrantChange(StrictSerializer):
    state = serializers.ChoiceField(choices=["revoked"], help_text="Takes the unused rest back.")
    reason = serializers.CharField(max_length=150, help_text="Visible to the tenant.")


class GrantChangeMixin(CrossTenantViewSet):
    """Taking credit back."""

    area = "billing"

    @OperatorAct(GrantChange)
    def partial_update(self, grant: Grant, body: dict[str, Any]) -> Grant:
        """Take back what is left of a grant; what it paid stays paid."""
        require_field(body, "state")
        return grant_withdrawals.take_back_grant(grant, why=require_field(body, "reason"), **self.by)
