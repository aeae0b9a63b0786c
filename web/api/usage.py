"""API of usage by day, and of the charges behind it."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.domain.money import exponent_of, to_minor
from billing.domain.periods import month_of
from billing.models import RatedCharge
from billing.services.rating import spend
from broker.domain.lifecycle.states import PriceClass
from broker.models import Lease, Offering
from tenants.models import Project
from web.api.amounts import ExactAmountOut, MoneyOut, exact_amount_out, money_out, running_total_out
from web.api.base_views import TenantViewSet, needs
from web.api.charge_pagination import ChargePagination, with_ids
from web.http.filters import QueryFilter
from web.http.query_parameters import parse_day

MAX_PERIOD = timedelta(days=400)


class UsageDayOut(serializers.Serializer[Any]):
    """Use by one offering, project or lease on one local day; amounts are not rounded."""

    day = serializers.DateField()
    key = serializers.CharField()
    unit_seconds = serializers.IntegerField()
    amount = MoneyOut()


@extend_schema_serializer(many=False)
class UsageOut(serializers.Serializer[Any]):
    """Usage by day in the tenant's time zone; `total` is rounded once."""

    time_zone = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    group_by = serializers.ChoiceField(choices=list(spend.GROUPS))
    items = UsageDayOut(many=True)
    unit_seconds = serializers.IntegerField()
    total = MoneyOut()


class RatedChargeOut(serializers.ModelSerializer[RatedCharge]):
    """Seconds × quantity at one price within one month; it never changes."""

    id = serializers.CharField()
    lease = serializers.CharField(source="lease_id")
    project = serializers.CharField(source="project_id")
    offering = serializers.CharField(source="offering_id")
    price_version = serializers.CharField(source="price_version_id")
    since = serializers.DateTimeField(source="s")
    until = serializers.DateTimeField(source="e")
    amount = serializers.SerializerMethodField()
    exact = serializers.SerializerMethodField()

    class Meta:
        model = RatedCharge
        fields = ("id", "lease", "seq", "project", "offering", "price_version", "since", "until", "unit_seconds",
                  "amount", "exact")  # fmt: skip

    @extend_schema_field(MoneyOut)
    def get_amount(self, charge: RatedCharge) -> dict[str, str]:
        return running_total_out(int(charge.exact_num), self.context["request"].tenant.currency)

    @extend_schema_field(ExactAmountOut)
    def get_exact(self, charge: RatedCharge) -> dict[str, str]:
        """Return the amount with twelve decimals, to recompute it."""
        return exact_amount_out(int(charge.exact_num), self.context["request"].tenant.currency)


class LeaseCostOut(serializers.Serializer[Any]):
    """Charges of a lease, and its cost up to this second.

    The cost includes the interval in progress. `cost_so_far` is not rounded to cents: an invoice
    rounds its lines once.
    """

    seconds = serializers.IntegerField()
    unit_seconds = serializers.IntegerField()
    cost_so_far = MoneyOut()
    items = RatedChargeOut(many=True)


USAGE_PARAMETERS = [
    OpenApiParameter("from", date, description="First day, local time; default: first day of this month."),
    OpenApiParameter("to", date, description="Day after the last day, local time; default: now."),
    OpenApiParameter("group_by", str, enum=list(spend.GROUPS)),
    OpenApiParameter("tag", str, description="With `group_by=tag`: the name of the tag."),
    OpenApiParameter("project", str, description="Only this project and its sub-projects."),
    OpenApiParameter(
        "price_class", str, enum=list(PriceClass), description="Only offerings of this class; grouped by offering."
    ),
]


class UsageViewSet(TenantViewSet):
    """Usage and its cost, up to this second."""

    serializer_class = UsageOut
    pagination_class = None
    parameters = frozenset({"from", "to", "group_by", "tag", "project", "price_class"})
    actions_needed = needs("usage.read", "list")

    def get_queryset(self) -> QuerySet[Project]:
        return self.in_reach(Project.objects.filter(tenant=self.request.tenant), "pk")

    @extend_schema(parameters=USAGE_PARAMETERS, responses=UsageOut, filters=False)
    def list(self, request: Request) -> Response:
        """Return usage by day, grouped by offering, project, lease, user or tag value."""
        projects, tenant = self.filter_queryset(self.get_queryset()), self.request.tenant
        group = request.query_params.get("group_by", "offering")
        if group not in spend.GROUPS:
            raise ValidationError({"group_by": f"Must be one of {', '.join(spend.GROUPS)}."})
        if wanted := request.query_params.get("project"):
            projects = projects.filter(path__contains=[self.project_for(wanted).pk])
        tag = request.query_params.get("tag", "")
        if bool(tag) != (group == "tag"):
            raise ValidationError({"tag": "Must be the name of a tag, together with `group_by=tag`."})
        since, until = self._span(request)
        ids = projects.values_list("pk", flat=True)
        used = spend.daily_usage(tenant, since, until, group=group, tag=tag, projects=ids)
        lines = spend.spend_lines([since, until], until=until, projects=ids)
        if terms := request.query_params.get("price_class", ""):
            known = offerings_of_class(terms, group)
            used = [each for each in used if each.key in known]
            lines = [line for line in lines if line.offering in known]
        total = sum(to_minor(line.exact_num, exponent_of(tenant.currency)) for line in lines)
        zone = ZoneInfo(tenant.time_zone)
        return Response(
            {
                "time_zone": tenant.time_zone,
                "since": since,
                "until": until,
                "group_by": group,
                "items": [
                    {
                        "day": each.day.astimezone(zone).date(),
                        "key": each.key,
                        "unit_seconds": each.unit_seconds,
                        "amount": running_total_out(each.exact_num, tenant.currency),
                    }
                    for each in used
                ],
                "unit_seconds": sum(each.unit_seconds for each in used),
                "total": money_out(total, tenant.currency),
            }
        )

    def _span(self, request: Request) -> tuple[datetime, datetime]:
        zone = self.request.tenant.time_zone
        begin = parse_day(request, "from", ZoneInfo(zone)) or month_of(zone, self.now.astimezone(UTC)).start
        end = min(parse_day(request, "to", ZoneInfo(zone)) or self.now, self.now)
        if not begin < end:
            raise ValidationError({"to": "Must be after `from`, which must not be in the future."})
        if end - begin > MAX_PERIOD:
            raise ValidationError({"from": f"The period can be at most {MAX_PERIOD.days} days."})
        return begin, end


def offerings_of_class(terms: str, group: str) -> set[str]:
    """Return the offerings of a price class."""
    if terms not in list(PriceClass):
        raise ValidationError({"price_class": f"Must be one of {', '.join(PriceClass)}."})
    if group != "offering":
        raise ValidationError({"price_class": "Requires `group_by=offering`."})
    return set(Offering.objects.filter(price_class=terms).values_list("pk", flat=True))


class RatedChargeViewSet(ListModelMixin, TenantViewSet):
    """Every charge; invoices are sums of these.

    Charges of the last half minute may still be missing.
    """

    serializer_class = RatedChargeOut
    pagination_class = ChargePagination
    sorts = ("-id",)
    filters = {
        "lease": QueryFilter("lease_id"),
        "project": QueryFilter("project_id"),
        "offering": QueryFilter("offering_id"),
        "since__gte": QueryFilter("s__gte", "moment"),
        "since__lt": QueryFilter("s__lt", "moment"),
    }
    actions_needed = needs("usage.read", "list")

    def get_queryset(self) -> QuerySet[RatedCharge]:
        rows = RatedCharge.objects.filter(tenant_id=self.request.tenant.pk)
        return with_ids(self.in_reach(rows, "project_id"))


class LeaseChargeViewSet(TenantViewSet):
    """Cost of one lease."""

    serializer_class = LeaseCostOut
    rows = Lease.objects.all()
    project_field = "project"
    actions_needed = needs("leases.read", "retrieve")

    @extend_schema(responses=LeaseCostOut)
    def retrieve(self, request: Request, pk: str) -> Response:
        """Return its charges in order, and its cost up to this second."""
        lease = self.get_object()
        currency = self.request.tenant.currency
        cost = spend.costs_of([lease.pk], now=self.now).get(lease.pk, spend.LeaseCost.nothing(currency))
        charges = with_ids(RatedCharge.objects.filter(lease_id=lease.pk)).order_by("seq", "s")
        return Response(
            {
                "seconds": cost.seconds,
                "unit_seconds": cost.unit_seconds,
                "cost_so_far": running_total_out(cost.exact_num, currency),
                "items": RatedChargeOut(charges, many=True, context=self.get_serializer_context()).data,
            }
        )
