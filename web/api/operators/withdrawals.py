"""Credit that operators take back."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import Grant
from billing.services.funds.wallets import grant_withdrawals
from web.api.base_views import validated_body
from web.api.operators.changes import ChangingViewSet
from web.api.serializer_fields import StrictSerializer


class GrantChange(StrictSerializer):
    state = serializers.ChoiceField(choices=["revoked"], help_text="Takes the unused rest back.")
    reason = serializers.CharField(max_length=150, help_text="Visible to the tenant.")


class GrantChangeMixin(ChangingViewSet):
    """Taking credit back."""

    area = "billing"

    @extend_schema(request=GrantChange)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Take back what is left of a grant; what it paid stays paid."""
        grant: Grant = self.row_to_change()
        body = validated_body(GrantChange, request)
        return self.changed(grant_withdrawals.take_back_grant(grant, why=body["reason"], **self.by))
