"""Operators' API of all prices, which they end and correct, and of price gaps."""

from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.models import Correction, PriceVersion
from billing.services.catalogue import price_list, price_withdrawal, tenant_prices
from billing.services.invoicing.corrections import correction_proposals
from billing.services.rating import unpriced_usage
from tenants.models import Tenant
from tenants.services.errors import ObjectNotFound
from web.api.base_views import complete_page
from web.api.lease_serializers import page_of
from web.api.operators.base_views import TENANT_FILTER, CrossTenantViewSet, OperatorAct, require_field
from web.api.operators.corrections import CorrectionOut, OperatorCorrectionViewSet, PriceCorrectionCreate
from web.api.price_versions import PriceVersionOut, PriceVersionRows
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter
from web.http.query_parameters import FLAG_DESCRIPTION, parse_flag

MAX_ID_DIGITS = 18


class OperatorPriceVersionOut(PriceVersionOut):
    """A price, its tenant if it is tenant-specific, and who set it."""

    tenant = serializers.CharField(source="tenant_id", allow_null=True)
    tenant_name = serializers.CharField(allow_null=True, default=None)
    created_by_label = serializers.CharField(source="created_by")

    class Meta(PriceVersionOut.Meta):
        fields = (*PriceVersionOut.Meta.fields, "tenant", "tenant_name", "created_by_label", "created_at")  # type: ignore[assignment]


class PriceChange(StrictSerializer):
    """When a tenant-specific price ends (null: now), or that a price never begins."""

    until = serializers.DateTimeField(allow_null=True)
    state = serializers.ChoiceField(choices=["withdrawn"], help_text="It never takes effect and is removed.")


class PriceGapOut(serializers.Serializer[Any]):
    """A period of use without a price.

    Nothing of its tenant is charged until a price covers it.
    """

    tenant = serializers.CharField()
    tenant_name = serializers.CharField()
    lease = serializers.CharField()
    seq = serializers.IntegerField()
    offering = serializers.CharField()
    offering_label = serializers.CharField(source="label")
    currency = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    unit_seconds = serializers.IntegerField()


def find_price_version(pk: str) -> PriceVersion:
    """Return a price version; text that is not a number matches none."""
    number = int(pk) if pk.isascii() and pk.isdigit() and len(pk) <= MAX_ID_DIGITS else 0
    return get_object_or_404(PriceVersion, pk=number)


OWN = OpenApiParameter("own", bool, description=f"Tenant-specific prices instead of list prices. {FLAG_DESCRIPTION}")


@extend_schema_view(list=extend_schema(parameters=[OWN]))
class OperatorPriceVersionViewSet(PriceVersionRows, CrossTenantViewSet):
    """Prices in every currency, also of draft offerings.

    They are list prices, or with `own=true` tenant-specific ones.
    """

    area = "offerings"
    serializer_class, audit_action = OperatorPriceVersionOut, "prices"
    rows = PriceVersion.objects.annotate(
        tenant_name=Subquery(Tenant.objects.filter(pk=OuterRef("tenant_id")).values("name"))
    )
    filters = TENANT_FILTER | PriceVersionRows.filters | {"currency": QueryFilter("currency")}
    parameters = frozenset({"own"})

    def get_queryset(self) -> QuerySet[PriceVersion]:
        rows, query = super().get_queryset(), self.request.query_params
        if "pk" in self.kwargs:
            return rows
        own = parse_flag("own", query.get("own", "false"))
        return rows.filter(tenant_id__isnull="tenant" not in query and not own)

    @OperatorAct(
        PriceChange,
        find=find_price_version,
        rows=PriceVersion.objects.all(),
        description="End a tenant-specific price at a future time: the list price applies from then on. Or withdraw a "
        "price before it begins with `state`: the one that it would have replaced stays in force (204).",
    )
    def partial_update(self, version: PriceVersion, body: dict[str, Any]) -> PriceVersion | None:
        """End a tenant-specific price, or withdraw one that has not begun."""
        if "state" in body:
            price_withdrawal.withdraw_price(version, **self.by)
            return None
        at = require_field(body, "until") or self.now
        if version.tenant_id is None:
            raise ObjectNotFound("A list price has no end.", fix="Publish the price that replaces it instead.")
        return tenant_prices.end_tenant_price(version, at=at, **self.by)

    @OperatorAct(
        PriceCorrectionCreate,
        find=find_price_version,
        answer=CorrectionOut,
        rows=OperatorCorrectionViewSet.rows,
        audit_action="corrections",
        creates=True,
    )
    def correction(self, version: PriceVersion, body: dict[str, Any]) -> Correction:
        """Propose another price for a period, for all tenants charged at it; returns the diff."""
        return correction_proposals.propose_price_correction(
            version,
            nano_per_hour=price_list.parse_nano_per_hour(body["price_per_hour"]),
            since=body["since"],
            until=body["until"],
            why=body["reason"],
            **self.by,
        )


class OperatorPriceGapViewSet(CrossTenantViewSet):
    """Use without a price."""

    area = "offerings"
    serializer_class, audit_action, pagination_class, filter_backends = PriceGapOut, "prices", None, []

    @extend_schema(operation_id="ops_price_gaps_list", responses=page_of(PriceGapOut, "PriceGapPage"))
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return all tenants' use that cannot be charged yet."""
        with self.read_scope():
            return complete_page(PriceGapOut(unpriced_usage.unpriced_usage(now=self.now), many=True).data)
