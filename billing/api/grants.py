"""Grants: credit that was given, what is left of it, and what it paid."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar

from django.db.models import Prefetch, QuerySet
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.grant_shapes import TOLD, CreditOut
from billing.models import Grant, GrantDraw, GrantReturn
from billing.services.grants import purse
from tenants.api.filters import Filter
from tenants.api.views import TenantViewSet


def whole(grants: QuerySet[Grant]) -> QuerySet[Grant]:
    """Have what each paid, and what came back to it, at hand; two queries more."""
    draws = GrantDraw.objects.select_related("grant", "line").order_by("-at", "pk")
    returns = GrantReturn.objects.select_related("grant").order_by("-pk")
    return grants.select_related("lapse").prefetch_related(
        Prefetch("draws", draws), Prefetch("returns", returns)
    )


def tell(grants: Iterable[Grant], now: datetime) -> list[Grant]:
    """Have how they stand at hand; three queries."""
    found = purse.standing(grants, now=now)
    for each in found:
        each.grant.__dict__[TOLD] = each
    return [each.grant for each in found]


class Grants(ListModelMixin, RetrieveModelMixin, TenantViewSet):
    """Grants are the whole tenant's, as its invoices are. Operators give them."""

    serializer_class = CreditOut
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    filters = {"project": Filter("project_id"), "offering": Filter("offering_id")}
    actions_needed = {"list": "billing.read", "retrieve": "billing.read"}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action is not None:  # else the method is not one of ours, which is said later
            self.allow()

    def get_queryset(self) -> QuerySet[Grant]:
        return self.visible(whole(Grant.objects.all()))

    def get_object(self) -> Grant:
        (found,) = tell([super().get_object()], self.now)
        return found

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return all grants, each as it stands now."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        return self.get_paginated_response(self.get_serializer(tell(page, self.now), many=True).data)
