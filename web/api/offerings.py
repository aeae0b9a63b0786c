"""API of offerings and GPU models, and of how many leases could start now."""

from typing import Any

from django.db.models import F, QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from billing.services.catalogue import price_list
from billing.services.quotes.quota_room import count_within_quotas
from broker.domain.lifecycle.states import Isolation, PriceClass
from broker.models import GpuModel, Offering, OfferingState
from broker.services.queue import open_capacity, reclaim_risks
from broker.services.queue.reclaim_risks import SpotConditions
from tenants.models import Project, QuotaKind
from tenants.services import quotas
from web.api.base_views import OLDEST_FIRST, RowViewSet, TenantViewSet, needs
from web.http.filters import QueryFilter
from web.http.query_parameters import FLAG_DESCRIPTION, parse_flag

VISIBLE_STATES = [OfferingState.PUBLISHED.value, OfferingState.RETIRED.value]


class AvailabilityOut(serializers.Serializer[Any]):
    """How many could start now, counted separately per offering.

    `quota_left` is how many all quotas of the project allow together, of the shortest duration: concurrent units,
    GPU-hours and spend rate; null where none limits them.
    """

    free_now = serializers.IntegerField()
    quota_left = serializers.IntegerField(allow_null=True)
    as_of = serializers.DateTimeField()


class SpotConditionsOut(serializers.Serializer[Any]):
    """Terms of a spot lease, and how many were reclaimed lately."""

    notice_s = serializers.IntegerField(help_text="Seconds between the notice and the end of a lease.")
    min_runtime_s = serializers.IntegerField(help_text="No lease gets notice before it was active for this long.")
    lease_count = serializers.IntegerField(help_text="Spot leases that ran in the last 30 days.")
    preempted_count = serializers.IntegerField(help_text="How many of them were preempted in the last 30 days.")
    risk = serializers.CharField(help_text="The same in a sentence.")


def spot_conditions_out(found: SpotConditions | None) -> dict[str, Any] | None:
    """Return the conditions of a spot offering; None for any other."""
    if found is None:
        return None
    return {
        "notice_s": found.terms.notice_s,
        "min_runtime_s": found.terms.min_runtime_s,
        "lease_count": found.risk.leases,
        "preempted_count": found.risk.preempted,
        "risk": str(found.risk),
    }


OFFERING_FIELDS = ("id", "label", "gpu_model", "profile", "isolation", "price_class", "region", "memory_gb",
                   "has_gpu", "cpu_milli", "host_memory_mib", "scratch_mib")  # fmt: skip
RESOURCE_TEXTS = {
    "cpu_milli": {"help_text": "CPU of one slice, in thousandths of a CPU."},
    "host_memory_mib": {"help_text": "Memory of the machine that comes with one slice, in MiB."},
    "scratch_mib": {"help_text": "Scratch storage of one slice, in MiB; it ends with the lease."},
}


HAS_GPU_TEXT = "False: CPUs without a GPU; `memory_gb` is 0 then, and no quota of units is used."


class OfferingOut(serializers.ModelSerializer[Offering]):
    gpu_model = serializers.CharField(source="gpu_model_id")
    has_gpu = serializers.BooleanField(help_text=HAS_GPU_TEXT)
    quota_units = serializers.SerializerMethodField()
    spot = serializers.SerializerMethodField()
    availability = serializers.SerializerMethodField()

    class Meta:
        model = Offering
        fields = (*OFFERING_FIELDS, "quota_units", "state", "spot", "availability")
        extra_kwargs = RESOURCE_TEXTS

    def get_quota_units(self, offering: Offering) -> str:
        """Return what one counts against a quota of units, as a decimal."""
        whole, milli = divmod(offering.milli_units, 1000)
        return f"{whole}.{milli:03d}"

    @extend_schema_field(SpotConditionsOut(allow_null=True))
    def get_spot(self, offering: Offering) -> dict[str, Any] | None:
        """Return the conditions of a spot offering; null for any other."""
        return spot_conditions_out(self.context["spot"].get(offering.pk))

    @extend_schema_field(AvailabilityOut)
    def get_availability(self, offering: Offering) -> dict[str, Any]:
        return self.context["free"][offering.pk]  # type: ignore[no-any-return]


class GpuModelOut(serializers.ModelSerializer[GpuModel]):
    id = serializers.CharField(source="name")
    memory_slices = serializers.IntegerField(source="memory_grid")
    partitioning = serializers.JSONField(source="spec", help_text="How it can be partitioned.")
    has_gpu = serializers.BooleanField(help_text="False: blocks of CPUs without a GPU; `memory_gb` is 0 then.")

    class Meta:
        model = GpuModel
        fields = ("id", "has_gpu", "memory_gb", "memory_slices", "compute_slices", "partitioning")


class GpuModelViewSet(ListModelMixin, RetrieveModelMixin, TenantViewSet):
    """GPU models and CPU, and how each can be partitioned."""

    serializer_class = GpuModelOut
    sorts = OLDEST_FIRST
    actions_needed = needs("offerings.read", "list", "retrieve")

    def get_queryset(self) -> QuerySet[GpuModel]:
        return GpuModel.objects.annotate(id=F("name"))


class OfferingRows(RowViewSet):
    """Offerings, as tenants and operators list them."""

    rows = Offering.objects.all()
    sorts = ("id", "-id", "label", "-label", "memory_gb", "-memory_gb")
    search_in = ("label", "profile", "gpu_model__name")
    filters = {
        "gpu_model": QueryFilter("gpu_model_id"),
        "region": QueryFilter("region"),
        "isolation": QueryFilter("isolation", choices=tuple(i.value for i in Isolation)),
        "price_class": QueryFilter("price_class", choices=tuple(p.value for p in PriceClass)),
    }


QUOTA_PROJECT = OpenApiParameter("project", str, description="Project whose quota applies; default: the root project.")

FREE_NOW = OpenApiParameter("free_now", bool, description=f"Whether it could start now. {FLAG_DESCRIPTION}")


@extend_schema(parameters=[QUOTA_PROJECT])
@extend_schema_view(list=extend_schema(parameters=[QUOTA_PROJECT, FREE_NOW]))
class OfferingViewSet(OfferingRows, ListModelMixin, RetrieveModelMixin, TenantViewSet):
    """What can be leased; a retired offering takes no new leases."""

    serializer_class = OfferingOut
    parameters = frozenset({"project", "free_now"})
    action_parameters = dict.fromkeys(("retrieve", "availability"), frozenset({"project"}))
    filters = OfferingRows.filters | {
        "profile": QueryFilter("profile"),
        "memory_gb__gte": QueryFilter("memory_gb__gte", "number"),
        "state": QueryFilter("state", choices=tuple(VISIBLE_STATES)),
    }
    actions_needed = needs("offerings.read", "list", "retrieve", "availability")

    def get_queryset(self) -> QuerySet[Offering]:
        return Offering.objects.filter(state__in=VISIBLE_STATES)

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Apply `free_now`: only offerings that could start now, or only the others."""
        found, free_now = super().filter_queryset(queryset), self.request.query_params.get("free_now")
        if self.action != "list" or free_now is None:
            return found
        wanted, free = parse_flag("free_now", free_now), open_capacity.count_open_capacity(found, now=self.now)
        return found.filter(pk__in=[pk for pk, count in free.items() if bool(count) is wanted])

    def prepare(self, rows: list[Any]) -> list[Any]:
        spot = reclaim_risks.load_spot_conditions(rows, now=self.now)
        self.beside = {"free": self._availability(rows), "spot": spot}
        return rows

    @extend_schema(responses=AvailabilityOut, filters=False)
    @action(detail=True, pagination_class=None)
    def availability(self, request: Request, pk: str) -> Response:
        """Return how many could start now, and how many the quota allows."""
        offering = self.get_object()
        return Response(self.beside["free"][offering.pk])

    def _availability(self, offerings: list[Offering]) -> dict[str, dict[str, Any]]:
        free, room = open_capacity.count_open_capacity(offerings, now=self.now), self._room()
        prices = self._prices(offerings) if QuotaKind.BURN in room else {}
        return {
            o.pk: {
                "free_now": free[o.pk],
                "quota_left": count_within_quotas(room, o, prices.get(o.pk)),
                "as_of": self.now,
            }
            for o in offerings
        }

    def _prices(self, offerings: list[Offering]) -> dict[str, int]:
        tenant, ids = self.request.tenant, [offering.pk for offering in offerings]
        known = price_list.prices_at(self.now, currency=tenant.currency, offerings=ids, tenant=tenant.pk)
        return {pk: price.nano_per_hour for pk, price in known.items()}

    def _room(self) -> dict[str, int]:
        """Return what is left of each kind of quota of the requested project.

        Without a requested project it is the highest visible one.
        """
        wanted, reach = (self.request.query_params.get("project", ""), self.request.roles.projects("offerings.read"))
        if wanted:
            project = self.project_for(wanted)
        elif reach is None:
            project = Project.objects.get(tenant=self.request.tenant, parent=None)
        else:
            project = Project.objects.filter(pk__in=reach).order_by("path")[0]
        rooms = quotas.remaining_quotas([project], now=self.now)[project.pk]
        return {room.kind: room.free for room in rooms}
