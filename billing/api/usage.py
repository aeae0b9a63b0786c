"""Usage by day, and the charges behind it."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.amounts import MoneyOut, exact, money, running
from billing.api.pages import ChargePages, with_ids
from billing.domain.money import exponent_of, to_minor
from billing.domain.periods import midnight, month_of
from billing.models import RatedCharge
from billing.services import spend
from broker.domain.states import PriceClass
from broker.models import Lease, Offering
from tenants.api.filters import Filter
from tenants.api.views import TenantViewSet
from tenants.models import Project

LONGEST = timedelta(days=400)


class DayOut(serializers.Serializer[Any]):
    """What one offering, project or lease used on one local day. Amounts are not rounded yet."""

    day = serializers.DateField()
    key = serializers.CharField()
    unit_seconds = serializers.IntegerField()
    amount = MoneyOut()


@extend_schema_serializer(many=False)
class UsageOut(serializers.Serializer[Any]):
    """Usage day by day in the tenant's time zone; `total` is rounded once."""

    time_zone = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    group_by = serializers.ChoiceField(choices=list(spend.GROUPS))
    items = DayOut(many=True)
    unit_seconds = serializers.IntegerField()
    total = MoneyOut()


class ChargeOut(serializers.ModelSerializer[RatedCharge]):
    """Seconds × quantity at one price within one month; written once and never changed."""

    id = serializers.CharField()
    lease = serializers.CharField(source="lease_id")
    project = serializers.CharField(source="project_id")
    offering = serializers.CharField(source="offering_id")
    price_version = serializers.CharField(source="price_version_id")
    start = serializers.DateTimeField(source="s")
    end = serializers.DateTimeField(source="e")
    amount = serializers.SerializerMethodField()

    class Meta:
        model = RatedCharge
        fields = (
            "id",
            "lease",
            "seq",
            "project",
            "offering",
            "price_version",
            "start",
            "end",
            "unit_seconds",
            "amount",
        )

    @extend_schema(responses=MoneyOut)
    def get_amount(self, charge: RatedCharge) -> dict[str, str]:
        return exact(int(charge.exact_num), self.context["request"].tenant.currency)


class CostOut(serializers.Serializer[Any]):
    """A lease's charges, and what it has cost to this second: charges and the stretch that still runs.

    `cost_so_far` is not rounded to cents: an invoice rounds its lines once.
    """

    seconds = serializers.IntegerField()
    unit_seconds = serializers.IntegerField()
    cost_so_far = MoneyOut()
    items = ChargeOut(many=True)


DAYS = [
    OpenApiParameter("from", date, description="First day, local; else the first of this month."),
    OpenApiParameter("to", date, description="The day after the last, local; else until now."),
    OpenApiParameter("group_by", str, enum=list(spend.GROUPS)),
    OpenApiParameter("tag", str, description="With `group_by=tag`: the name of the tag."),
    OpenApiParameter("project", str, description="Only this project and all below it."),
    OpenApiParameter("price_class", str, description="Only offerings of this class; grouped by offering."),
]


class Usage(TenantViewSet):
    """What was used and what it costs, to this second."""

    serializer_class = UsageOut
    pagination_class = None
    parameters = frozenset({"from", "to", "group_by", "tag", "project", "price_class"})
    actions_needed = {"list": "usage.read"}

    def get_queryset(self) -> QuerySet[Project]:
        return self.in_reach(Project.objects.filter(tenant=self.request.tenant), "pk")

    @extend_schema(parameters=DAYS, responses=UsageOut, filters=False)
    def list(self, request: Request) -> Response:
        """Return usage by day, stacked by offering, project, lease, whoever asked or the value of a tag."""
        projects, tenant = self.filter_queryset(self.get_queryset()), self.request.tenant
        group = request.query_params.get("group_by", "offering")
        if group not in spend.GROUPS:
            raise ValidationError({"group_by": f"Is one of {', '.join(spend.GROUPS)}."})
        if wanted := request.query_params.get("project"):
            projects = projects.filter(path__contains=[self.project_for(wanted).pk])
        tag = request.query_params.get("tag", "")
        if bool(tag) != (group == "tag"):
            raise ValidationError({"tag": "Is the name of a tag, and goes with `group_by=tag`."})
        since, until = self._span(request)
        ids = projects.values_list("pk", flat=True)
        used = spend.by_day(tenant, since, until, group=group, tag=tag, projects=ids)
        lines = spend.lines([since, until], until=until, projects=ids)
        if terms := request.query_params.get("price_class", ""):
            known = of_class(terms, group)
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
                        "amount": exact(each.exact_num, tenant.currency),
                    }
                    for each in used
                ],
                "unit_seconds": sum(each.unit_seconds for each in used),
                "total": money(total, tenant.currency),
            }
        )

    def _span(self, request: Request) -> tuple[datetime, datetime]:
        zone = self.request.tenant.time_zone
        begin = self._day(request, "from", zone) or month_of(zone, self.now.astimezone(UTC)).start
        end = min(self._day(request, "to", zone) or self.now, self.now)
        if not begin < end:
            raise ValidationError({"to": "Is after `from`, and `from` is not in the future."})
        if end - begin > LONGEST:
            raise ValidationError({"from": f"At most {LONGEST.days} days are told at once."})
        return begin, end

    @staticmethod
    def _day(request: Request, name: str, zone: str) -> datetime | None:
        text = request.query_params.get(name, "")
        if not text:
            return None
        try:
            return midnight(date.fromisoformat(text), ZoneInfo(zone))
        except (ValueError, OverflowError):
            raise ValidationError({name: "Is a day such as 2026-11-21."}) from None


def of_class(terms: str, group: str) -> set[str]:
    """Return the offerings of these terms."""
    if terms not in list(PriceClass):
        raise ValidationError({"price_class": f"Is one of {', '.join(PriceClass)}."})
    if group != "offering":
        raise ValidationError({"price_class": "Can be told apart only with `group_by=offering`."})
    return set(Offering.objects.filter(price_class=terms).values_list("pk", flat=True))


class RatedCharges(ListModelMixin, TenantViewSet):
    """Every charge: what invoices are the sums of. What ended within the last half minute may still be missing."""

    serializer_class = ChargeOut
    pagination_class = ChargePages
    filters = {
        "lease": Filter("lease_id"),
        "project": Filter("project_id"),
        "offering": Filter("offering_id"),
        "start__gte": Filter("s__gte", "moment"),
        "start__lt": Filter("s__lt", "moment"),
    }
    actions_needed = {"list": "usage.read"}

    def get_queryset(self) -> QuerySet[RatedCharge]:
        rows = RatedCharge.objects.filter(tenant_id=self.request.tenant.pk)
        return with_ids(self.in_reach(rows, "project_id"))


class LeaseCharges(TenantViewSet):
    """What one lease has cost."""

    serializer_class = CostOut
    project_field = "project"
    actions_needed = {"retrieve": "leases.read"}

    def get_queryset(self) -> QuerySet[Lease]:
        return self.visible(Lease.objects.all())

    @extend_schema(responses=CostOut)
    def retrieve(self, request: Request, pk: str) -> Response:
        """Return its charges, first to last, and its cost to this second."""
        lease = self.get_object()
        currency = self.request.tenant.currency
        cost = spend.costs([lease.pk], now=self.now).get(lease.pk, spend.Cost.nothing(currency))
        charges = with_ids(RatedCharge.objects.filter(lease_id=lease.pk)).order_by("seq", "s")
        return Response(
            {
                "seconds": cost.seconds,
                "unit_seconds": cost.unit_seconds,
                "cost_so_far": running(cost.exact_num, currency),
                "items": ChargeOut(charges, many=True, context=self.get_serializer_context()).data,
            }
        )
