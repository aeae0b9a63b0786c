"""Operators' API of invariant checks of all tenants."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.services.ledger import invariant_checks
from web.api.base_views import complete_page
from web.api.lease_serializers import page_of
from web.api.operators.base_views import CrossTenantViewSet


class InvariantCheckOut(serializers.Serializer[Any]):
    """An invariant and the result of its newest check; it holds if nothing was found."""

    name = serializers.CharField()
    description = serializers.CharField()
    holds = serializers.BooleanField()
    found_count = serializers.IntegerField(source="found")
    examples = serializers.ListField(child=serializers.CharField())
    checked_at = serializers.DateTimeField()


class OperatorInvariantCheckViewSet(CrossTenantViewSet):
    """Invariant checks of capacity, quotas, ledger and charges against the rows themselves."""

    area = "system"
    serializer_class, audit_action, pagination_class, filter_backends = InvariantCheckOut, "integrity_checks", None, []

    @extend_schema(operation_id="ops_proofs_list", responses=page_of(InvariantCheckOut, "InvariantCheckPage"))
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """List the results of the newest run; the checks run every minute."""
        with self.read_scope():
            return complete_page(InvariantCheckOut(invariant_checks.latest_checks(now=self.now), many=True).data)
