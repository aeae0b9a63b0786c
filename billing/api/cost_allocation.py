"""Whom of a tenant an invoice falls to, on the wire."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from billing.api.amounts import MoneyOut, money
from billing.models import Invoice
from billing.services import cost_allocation

ASKED = [
    OpenApiParameter("by", str, enum=list(cost_allocation.WAYS), description="Else by project."),
    OpenApiParameter(
        "tag", str, description="Of which tag of the leases the values are told, with `by=tag`."
    ),
]
LONGEST = 100


class CostPartOut(serializers.Serializer[Any]):
    """What falls to one project, user or value of a tag. An empty key is what has none."""

    key = serializers.CharField(allow_blank=True)
    name = serializers.CharField(allow_blank=True)
    unit_seconds = serializers.IntegerField()
    amount = MoneyOut(help_text="Before tax.")
    tax = MoneyOut()
    total = MoneyOut()


@extend_schema_serializer(many=False)
class CostAllocationOut(serializers.Serializer[Any]):
    """Every line is shared on its own, in whole coins by largest remainder: the parts come to the invoice's total."""

    by = serializers.ChoiceField(choices=list(cost_allocation.WAYS))
    tag = serializers.CharField(allow_blank=True)
    tags = serializers.ListField(child=serializers.CharField(), help_text="The tags that its leases have.")
    items = CostPartOut(many=True)
    total = MoneyOut()


def told(invoice: Invoice, request: Request) -> dict[str, Any]:
    """Return whom an invoice falls to, as the query asks."""
    by, tag = request.query_params.get("by", "project"), request.query_params.get("tag", "")
    if by not in cost_allocation.WAYS:
        raise ValidationError({"by": f"Is one of {', '.join(cost_allocation.WAYS)}."})
    if (by == "tag") != bool(tag) or len(tag) > LONGEST:
        raise ValidationError({"tag": "Goes with `by=tag`, and names one of the tags."})
    parts = cost_allocation.allocated(invoice, by=by, tag=tag)
    currency = invoice.currency
    return {
        "by": by,
        "tag": tag,
        "tags": cost_allocation.tags_of(invoice),
        "items": [
            {
                "key": part.key,
                "name": part.name,
                "unit_seconds": part.unit_seconds,
                "amount": money(part.minor, currency),
                "tax": money(part.tax, currency),
                "total": money(part.total, currency),
            }
            for part in parts
        ],
        "total": money(sum(part.total for part in parts), currency),
    }
