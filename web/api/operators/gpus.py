"""Operators' API of GPUs: use, tenant and price of every slice."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from billing.services.reports import earnings
from broker.domain.lifecycle.states import LeaseState
from broker.models import Gpu, GpuHealth, NodeState
from broker.services.inventory import hardware
from broker.services.leases.lifecycle import eviction
from broker.services.reports import fleet_gpus
from broker.services.reports.gpu_usage import FLEET_FILTERS, FleetGpu, UnitUse
from web.api.amounts import PriceOut, hourly_price_out
from web.api.base_views import OLDEST_FIRST
from web.api.operators.base_views import CrossTenantViewSet, OperatorAct, require_field
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter


class SliceLeaseOut(serializers.Serializer[Any]):
    """The lease that holds a slice.

    The price is that of one slice; null while nothing is charged.
    """

    lease = serializers.CharField()
    lease_name = serializers.CharField()
    tenant = serializers.CharField()
    tenant_name = serializers.CharField()
    profile = serializers.CharField()
    state = serializers.ChoiceField(choices=[each.value for each in LeaseState])
    since = serializers.DateTimeField()
    ends_at = serializers.DateTimeField(allow_null=True)
    price_per_hour = PriceOut(allow_null=True)


class GpuSectionOut(serializers.Serializer[Any]):
    """Adjacent memory slices with the same use; `held_by` is null without a lease."""

    start = serializers.IntegerField()
    size = serializers.IntegerField()
    use = serializers.ChoiceField(choices=[each.value for each in UnitUse])
    held_by = SliceLeaseOut(allow_null=True)


class OperatorGpuOut(serializers.Serializer[Any]):
    """A GPU of the fleet, from its first memory slice to its last."""

    id = serializers.CharField()
    where = serializers.CharField()
    cluster = serializers.CharField()
    node = serializers.CharField()
    node_state = serializers.ChoiceField(choices=NodeState.choices)
    index = serializers.IntegerField()
    gpu_model = serializers.CharField()
    health = serializers.ChoiceField(choices=GpuHealth.choices)
    health_reason = serializers.CharField()
    memory_slices = serializers.IntegerField(help_text="Their number; sizes of slices are given in them.")
    sections = GpuSectionOut(many=True)


def gpu_row(gpu: FleetGpu, priced: dict[str, tuple[int, str]]) -> dict[str, Any]:
    """Return a GPU as OperatorGpuOut; `priced` holds (10⁻⁹ units per hour, currency) of active leases."""
    parts = []
    for run in gpu.unit_runs:
        held = None
        if run.slice is not None:
            price = priced.get(run.slice.lease)
            held = {
                "lease": run.slice.lease,
                "lease_name": run.slice.lease_name,
                "tenant": run.slice.tenant,
                "tenant_name": run.slice.tenant_name,
                "profile": run.slice.profile,
                "state": run.slice.state.value,
                "since": run.slice.since,
                "ends_at": run.slice.ends_at,
                "price_per_hour": hourly_price_out(*price) if price else None,
            }
        parts.append({"start": run.start, "size": run.size, "use": run.use.value, "held_by": held})
    return {
        "id": gpu.id,
        "where": gpu.location,
        "cluster": gpu.cluster,
        "node": gpu.node,
        "node_state": gpu.node_state.value,
        "index": gpu.index,
        "gpu_model": gpu.model,
        "health": gpu.health.value,
        "health_reason": gpu.health_reason,
        "memory_slices": gpu.grid,
        "sections": parts,
    }


class GpuChange(StrictSerializer):
    """Health of a GPU, as an operator sets it, and the reason for its history."""

    health = serializers.ChoiceField(choices=[GpuHealth.HEALTHY.value, GpuHealth.UNHEALTHY.value])
    reason = serializers.CharField(max_length=eviction.MAX_REASON_LENGTH)


SHOW = OpenApiParameter("show", str, enum=list(FLEET_FILTERS), description="Only GPUs in this condition.")


@extend_schema_view(list=extend_schema(parameters=[SHOW]))
class OperatorGpuViewSet(CrossTenantViewSet):
    """Every GPU with its sections: the rows of the fleet map."""

    area = "fleet"
    serializer_class, rows, audit_action = OperatorGpuOut, Gpu.objects.all(), "gpus"
    sorts = OLDEST_FIRST
    parameters = frozenset({"show"})
    filters = {
        "cluster": QueryFilter("node__cluster_id"),
        "node": QueryFilter("node_id"),
        "gpu_model": QueryFilter("gpu_model_id"),
        "health": QueryFilter("health", choices=tuple(GpuHealth.values)),
    }

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        found, show = super().filter_queryset(queryset), self.request.query_params.get("show", "")
        if not show:
            return found
        if show not in FLEET_FILTERS:
            raise ValidationError({"show": f"Must be one of {', '.join(FLEET_FILTERS)}."})
        return found.filter(pk__in=[gpu.id for gpu in fleet_gpus.load_gpus() if FLEET_FILTERS[show](gpu)])

    def prepare(self, rows: list[Any]) -> list[Any]:
        known = {gpu.id: gpu for gpu in fleet_gpus.load_gpus(gpu="" if self.action == "list" else rows[0].pk)}
        shown = [known[gpu.pk] for gpu in rows]
        priced = earnings.hourly_prices_of([s.lease for gpu in shown for s in gpu.slices], now=self.now)
        return [gpu_row(gpu, priced) for gpu in shown]

    @OperatorAct(GpuChange)
    def partial_update(self, gpu: Gpu, body: dict[str, Any]) -> Gpu:
        """Quarantine a GPU (`unhealthy`) or return it to service; its leases go on."""
        health, reason = GpuHealth(require_field(body, "health")), require_field(body, "reason")
        hardware.set_gpu_health(gpu, health, reason=eviction.clean_reason(reason), **self.by)
        return gpu
