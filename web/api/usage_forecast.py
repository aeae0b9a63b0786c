"""API of the expected cost of the month."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.domain.money import exponent_of, to_minor
from billing.domain.spend_forecast import ExpectedCost
from billing.services.rating import spend
from billing.services.reports.spend_forecast import forecast_spend
from tenants.models import Project
from web.api.amounts import MoneyOut, money_out
from web.api.base_views import TenantViewSet, needs


class ExpectedAmountOut(serializers.Serializer[Any]):
    """An expected amount; with 80 % probability it lies between `low` and `high`."""

    amount = MoneyOut()
    low = MoneyOut()
    high = MoneyOut()


class ExpectedDayOut(serializers.Serializer[Any]):
    """A future local day or the rest of today, with the month's cost by then."""

    day = serializers.DateField()
    cost = ExpectedAmountOut()
    month_by_then = ExpectedAmountOut()


@extend_schema_serializer(many=False)
class UsageForecastOut(serializers.Serializer[Any]):
    """The remaining days of this month, the rest of today first.

    `month_total` is what is expected from the last weeks: null with less than two weeks of use. `going_on` is the
    month's cost if everything that runs now continues to its own end, and nothing else begins: the forecast of budgets.
    """

    time_zone = serializers.CharField()
    month_total = ExpectedAmountOut(allow_null=True)
    going_on = MoneyOut()
    items = ExpectedDayOut(many=True)


class UsageForecastViewSet(TenantViewSet):
    """Expected cost of this month, from the same weekdays of the last four weeks."""

    serializer_class = UsageForecastOut
    pagination_class = None
    parameters = frozenset({"project"})
    actions_needed = needs("usage.read", "list")

    def get_queryset(self) -> QuerySet[Project]:
        return self.in_reach(Project.objects.filter(tenant=self.request.tenant), "pk")

    @extend_schema(
        parameters=[OpenApiParameter("project", str, description="Only this project and its sub-projects.")],
        responses=UsageForecastOut,
        filters=False,
    )
    def list(self, request: Request) -> Response:
        """Return the expected cost of each remaining day, and of the month."""
        projects, tenant = self.filter_queryset(self.get_queryset()), self.request.tenant
        if wanted := request.query_params.get("project"):
            projects = projects.filter(path__contains=[self.project_for(wanted).pk])
        named = list(projects.values_list("pk", flat=True))
        forecast = forecast_spend(tenant, now=self.now, projects=named)
        going_on = spend.spend_by_month_end(tenant, now=self.now, projects=named)
        return Response(
            {
                "time_zone": tenant.time_zone,
                "month_total": expected_amount_body(forecast.month, tenant.currency) if forecast else None,
                "going_on": money_out(going_on, tenant.currency),
                "items": [
                    {
                        "day": each.day,
                        "cost": expected_amount_body(each.cost, tenant.currency),
                        "month_by_then": expected_amount_body(each.month_by_then, tenant.currency),
                    }
                    for each in (forecast.days if forecast else ())
                ],
            }
        )


def expected_amount_body(one: ExpectedCost, currency: str) -> dict[str, Any]:
    """Return an expected amount in whole minor units, since it is no more precise."""
    places = exponent_of(currency)
    amounts = {"amount": one.amount, "low": one.low, "high": one.high}
    return {name: money_out(to_minor(exact, places), currency) for name, exact in amounts.items()}
