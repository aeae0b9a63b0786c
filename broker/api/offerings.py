"""What is sold, and how much of it could start now."""

from typing import Any

from django.db.models import F, QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from broker.domain.states import Isolation, PriceClass
from broker.models import GpuModel, Offering, OfferingState
from broker.services.leases import openings
from tenants.api.filters import Filter
from tenants.api.views import TenantViewSet
from tenants.models import Project, QuotaKind
from tenants.services import quotas

SOLD = [OfferingState.PUBLISHED.value, OfferingState.RETIRED.value]


class Availability(serializers.Serializer[Any]):
    """How many could start now, each counted alone; `quota_left` is null where no quota limits them."""

    free_now = serializers.IntegerField()
    quota_left = serializers.IntegerField(allow_null=True)
    as_of = serializers.DateTimeField()


WHAT_IT_IS = ("id", "label", "gpu_model", "profile", "isolation", "price_class", "region", "memory_gb")


class OfferingOut(serializers.ModelSerializer[Offering]):
    gpu_model = serializers.CharField(source="gpu_model_id")
    units = serializers.SerializerMethodField()
    availability = serializers.SerializerMethodField()

    class Meta:
        model = Offering
        fields = (*WHAT_IT_IS, "units", "state", "availability")

    def get_units(self, offering: Offering) -> str:
        """Return what one counts against a quota of units, a decimal."""
        whole, milli = divmod(offering.milli_units, 1000)
        return f"{whole}.{milli:03d}"

    @extend_schema(responses=Availability)
    def get_availability(self, offering: Offering) -> dict[str, Any]:
        return self.context["free"][offering.pk]  # type: ignore[no-any-return]


class GpuModelOut(serializers.ModelSerializer[GpuModel]):
    id = serializers.CharField(source="name")

    class Meta:
        model = GpuModel
        fields = ("id", "memory_gb", "memory_grid", "compute_slices", "spec")


class GpuModels(ListModelMixin, RetrieveModelMixin, TenantViewSet):
    """Kinds of cards, and how each can be cut."""

    serializer_class = GpuModelOut
    sorts = ("id", "-id")
    actions_needed = {"list": "offerings.read", "retrieve": "offerings.read"}

    def get_queryset(self) -> QuerySet[GpuModel]:
        return GpuModel.objects.annotate(id=F("name"))


@extend_schema(
    parameters=[OpenApiParameter("project", str, description="Whose quota counts; else the root's.")]
)
class Offerings(ListModelMixin, RetrieveModelMixin, TenantViewSet):
    """What can be leased. A retired offering takes no new leases."""

    serializer_class = OfferingOut
    sorts = ("id", "-id", "label", "-label", "memory_gb", "-memory_gb")
    search_in = ("label", "profile", "gpu_model__name")
    parameters = frozenset({"project", "free_now"})
    filters = {
        "gpu_model": Filter("gpu_model_id"),
        "profile": Filter("profile"),
        "region": Filter("region"),
        "memory_gb__gte": Filter("memory_gb__gte", "number"),
        "isolation": Filter("isolation", choices=tuple(i.value for i in Isolation)),
        "price_class": Filter("price_class", choices=tuple(p.value for p in PriceClass)),
        "state": Filter("state", choices=tuple(SOLD)),
    }
    actions_needed = {
        "list": "offerings.read",
        "retrieve": "offerings.read",
        "availability": "offerings.read",
    }

    def get_queryset(self) -> QuerySet[Offering]:
        return Offering.objects.filter(state__in=SOLD)

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Understand `free_now=true`: only what could start this second."""
        found, asked = super().filter_queryset(queryset), self.request.query_params.get("free_now", "")
        if self.action != "list" or not asked:
            return found
        if asked != "true":
            raise ValidationError({"free_now": "Is true, or left out."})
        free = openings.count(found, now=self.now)
        return found.filter(pk__in=[pk for pk, count in free.items() if count])

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "free": getattr(self, "free", {})}

    def paginate_queryset(self, queryset: Any) -> Any:
        page = super().paginate_queryset(queryset)
        self.free = self._availability(page or [])
        return page

    def get_object(self) -> Offering:
        offering: Offering = super().get_object()
        self.free = self._availability([offering])
        return offering

    @extend_schema(responses=Availability, filters=False)
    @action(detail=True, pagination_class=None)
    def availability(self, request: Request, pk: str) -> Response:
        """Return how many could start now, and how many the quota leaves."""
        offering = self.get_object()
        return Response(self.free[offering.pk])

    def _availability(self, offerings: list[Offering]) -> dict[str, dict[str, Any]]:
        free, room = openings.count(offerings, now=self.now), self._room()
        return {
            o.pk: {
                "free_now": free[o.pk],
                "quota_left": None if room is None else room // o.milli_units,
                "as_of": self.now,
            }
            for o in offerings
        }

    def _room(self) -> int | None:
        """Return the free units of the project asked about, else of the highest one in sight; None without quota."""
        wanted, reach = (
            self.request.query_params.get("project", ""),
            self.request.roles.projects("offerings.read"),
        )
        if wanted:
            project = self.project_for(wanted)
        elif reach is None:
            project = Project.objects.get(tenant=self.request.tenant, parent=None)
        else:
            project = Project.objects.filter(pk__in=reach).order_by("path")[0]
        rooms = quotas.room([project], now=self.now)[project.pk]
        return next((room.free for room in rooms if room.kind == QuotaKind.UNITS), None)
