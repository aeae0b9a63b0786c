"""API of grants: credit, what is left of it, and what it paid."""

from typing import Any

from django.db.models import Prefetch
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import Grant, GrantDraw, GrantReturn
from billing.services.funds.grants import grant_balances
from web.api.base_views import RowViewSet, WholeTenantViewSet, needs
from web.api.grant_serializers import CreditOut
from web.http.filters import QueryFilter


class GrantRows(RowViewSet):
    """Grants with their current figures, as tenants and operators list them."""

    rows = Grant.objects.select_related("tenant", "lapse").prefetch_related(
        Prefetch("draws", GrantDraw.objects.select_related("grant", "line").order_by("-at", "pk")),
        Prefetch("returns", GrantReturn.objects.select_related("grant").order_by("-pk")),
    )

    def prepare(self, rows: list[Any]) -> list[Any]:
        found = grant_balances.grant_balances(rows, now=self.now)
        for each in found:
            each.grant.figures = each  # type: ignore[attr-defined]  # the serializer shows them
        return [each.grant for each in found]


class GrantViewSet(GrantRows, ListModelMixin, RetrieveModelMixin, WholeTenantViewSet):
    """Grants of the whole tenant, which operators give."""

    serializer_class = CreditOut
    filters = {"project": QueryFilter("project_id"), "offering": QueryFilter("offering_id")}
    actions_needed = needs("billing.read", "list", "retrieve")

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return all grants with their current figures."""
        return super().list(request, *args, **kwargs)
