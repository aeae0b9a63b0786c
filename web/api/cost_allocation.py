"""Allocation of an invoice to projects, users or tags, for the API."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from billing.models import Invoice
from billing.services.reports import cost_allocation
from web.api.amounts import MoneyOut, money_out

PARAMETERS = [
    OpenApiParameter("group_by", str, enum=list(cost_allocation.ALLOCATION_KEYS), description="Default: by project."),
    OpenApiParameter("tag", str, description="With `group_by=tag`: the name of the tag."),
]
MAX_TAG_LENGTH = 100


class CostShareOut(serializers.Serializer[Any]):
    """Share of one project, user or tag value; an empty key stands for none."""

    key = serializers.CharField(allow_blank=True)
    name = serializers.CharField(allow_blank=True)
    unit_seconds = serializers.IntegerField()
    amount = MoneyOut(help_text="Before tax.")
    tax = MoneyOut()
    credited = MoneyOut(help_text="Given back by credit notes, with its tax.")
    total = MoneyOut(help_text="Amount and tax, less what was credited.")


@extend_schema_serializer(many=False)
class CostAllocationOut(serializers.Serializer[Any]):
    """Allocation of an invoice; its parts add up to the total after credit notes.

    Every line is divided on its own, in whole minor units by largest remainder.
    """

    group_by = serializers.ChoiceField(choices=list(cost_allocation.ALLOCATION_KEYS))
    tag = serializers.CharField(allow_blank=True)
    tag_names = serializers.ListField(child=serializers.CharField(), help_text="Tags used by its leases.")
    items = CostShareOut(many=True)
    total = MoneyOut()


def allocation_body(invoice: Invoice, request: Request) -> dict[str, Any]:
    """Return the allocation of an invoice, as the query parameters ask."""
    by, tag = request.query_params.get("group_by", "project"), request.query_params.get("tag", "")
    if by not in cost_allocation.ALLOCATION_KEYS:
        raise ValidationError({"group_by": f"Must be one of {', '.join(cost_allocation.ALLOCATION_KEYS)}."})
    if (by == "tag") != bool(tag) or len(tag) > MAX_TAG_LENGTH:
        raise ValidationError({"tag": "Requires `group_by=tag` and the name of a tag."})
    parts = cost_allocation.allocate_cost(invoice, by=by, tag=tag)
    currency = invoice.currency
    return {
        "group_by": by,
        "tag": tag,
        "tag_names": cost_allocation.invoice_tag_names(invoice),
        "items": [
            {
                "key": part.key,
                "name": part.name,
                "unit_seconds": part.unit_seconds,
                "amount": money_out(part.net, currency),
                "tax": money_out(part.tax, currency),
                "credited": money_out(part.credited, currency),
                "total": money_out(part.total, currency),
            }
            for part in parts
        ],
        "total": money_out(sum(part.total for part in parts), currency),
    }
