"""What the month will likely have cost by its end."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.amounts import MoneyOut, money
from billing.domain.money import exponent_of, to_minor
from billing.domain.outlook import Likely
from billing.services.outlook import outlook
from tenants.api.views import TenantViewSet
from tenants.models import Project


class LikelyOut(serializers.Serializer[Any]):
    """An amount that is not known yet; four times of five it lies between `low` and `high`."""

    amount = MoneyOut()
    low = MoneyOut()
    high = MoneyOut()


class DayAheadOut(serializers.Serializer[Any]):
    """A local day to come, or what is left of today, and what the month will have cost by its end."""

    day = serializers.DateField()
    cost = LikelyOut()
    month_by_then = LikelyOut()


@extend_schema_serializer(many=False)
class OutlookOut(serializers.Serializer[Any]):
    """The days left of this month, today's rest first; null as long as there were less than two weeks of use.

    `going_on` is what the month comes to if all that runs now goes on to its own end, and nothing else begins.
    """

    time_zone = serializers.CharField()
    month = LikelyOut(allow_null=True)
    going_on = MoneyOut(allow_null=True)
    items = DayAheadOut(many=True)


class UsageOutlook(TenantViewSet):
    """What this month will likely cost, if days go on as the same weekdays of the last four weeks went."""

    serializer_class = OutlookOut
    pagination_class = None
    parameters = frozenset({"project"})
    actions_needed = {"list": "usage.read"}

    def get_queryset(self) -> QuerySet[Project]:
        return self.in_reach(Project.objects.filter(tenant=self.request.tenant), "pk")

    @extend_schema(
        parameters=[OpenApiParameter("project", str, description="Only this project and all below it.")],
        responses=OutlookOut,
        filters=False,
    )
    def list(self, request: Request) -> Response:
        """Return what each day that is left of the month will likely cost, and the month with it."""
        projects, tenant = self.filter_queryset(self.get_queryset()), self.request.tenant
        if wanted := request.query_params.get("project"):
            projects = projects.filter(path__contains=[self.project_for(wanted).pk])
        told = outlook(tenant, now=self.now, projects=list(projects.values_list("pk", flat=True)))
        places = exponent_of(tenant.currency)
        return Response(
            {
                "time_zone": tenant.time_zone,
                "month": likely(told.month, tenant.currency) if told else None,
                "going_on": money(to_minor(told.going_on, places), tenant.currency) if told else None,
                "items": [
                    {
                        "day": each.day,
                        "cost": likely(each.cost, tenant.currency),
                        "month_by_then": likely(each.month_by_then, tenant.currency),
                    }
                    for each in (told.days if told else ())
                ],
            }
        )


def likely(one: Likely, currency: str) -> dict[str, Any]:
    """Return it in whole coins: more it does not know."""
    places = exponent_of(currency)
    told = {"amount": one.amount, "low": one.low, "high": one.high}
    return {name: money(to_minor(exact, places), currency) for name, exact in told.items()}
