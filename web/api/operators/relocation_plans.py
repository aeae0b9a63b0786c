"""Operators' API of relocation plans, with every relocation and every step."""

from typing import Any

from django.db.models import Prefetch
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from broker.domain.lifecycle.relocation_states import RelocationPlanState
from broker.models import Cluster, Relocation, RelocationLogEntry, RelocationPlan
from broker.services.leases.lifecycle import eviction
from broker.services.relocation import plan_decisions, plan_proposals
from web.api.base_views import ETagViewSet, validated_body
from web.api.operators.base_views import CrossTenantViewSet
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent

DECISIONS = {
    RelocationPlanState.ACCEPTED.value: plan_decisions.accept_plan,
    RelocationPlanState.DECLINED.value: plan_decisions.decline_plan,
    RelocationPlanState.CANCELLED.value: plan_decisions.cancel_plan,
}


class RelocationOut(serializers.ModelSerializer[Relocation]):
    """Relocation of one lease from one allocation to another."""

    lease = serializers.CharField(source="lease_id")
    lease_name = serializers.CharField(source="lease.name")
    tenant = serializers.CharField(source="tenant_id")
    from_gpu = serializers.CharField(source="from_gpu_id")
    to_gpu = serializers.CharField(source="to_gpu_id")
    position = serializers.IntegerField(source="n", help_text="Its position in the plan, from 1.")
    state_since = serializers.DateTimeField(source="state_at")
    state_reason = serializers.CharField(source="why")

    class Meta:
        model = Relocation
        fields = ("id", "position", "lease", "lease_name", "tenant", "profile", "size", "from_gpu", "from_start",
                  "to_gpu", "to_start", "cost_s", "gain_milli", "state", "state_since", "state_reason",
                  "not_before")  # fmt: skip


class RelocationEntryOut(serializers.ModelSerializer[RelocationLogEntry]):
    actor_label = serializers.CharField()
    position = serializers.IntegerField(source="n", allow_null=True, help_text="Of its relocation; null: of the plan.")
    reason = serializers.CharField(source="why")

    class Meta:
        model = RelocationLogEntry
        fields = ("seq", "position", "state", "at", "reason", "actor_label")


class PlannedSliceOut(serializers.Serializer[Any]):
    """A slice on a GPU, and the position of the relocation that moves it."""

    start = serializers.IntegerField()
    size = serializers.IntegerField()
    position = serializers.IntegerField(allow_null=True)


class PlannedGpuOut(serializers.Serializer[Any]):
    """A GPU of a plan, before and after its relocations."""

    gpu = serializers.CharField()
    name = serializers.CharField()
    memory_slices = serializers.IntegerField()
    slices_before = PlannedSliceOut(many=True)
    slices_after = PlannedSliceOut(many=True)


def _planned_gpu(stored: dict[str, Any]) -> dict[str, Any]:
    """Return a GPU as its plan stores it, with names."""
    drawn = {
        f"slices_{when}": [
            {"start": start, "size": size, "position": number or None} for start, size, number in stored[when]
        ]
        for when in ("before", "after")
    }
    return {"gpu": stored["gpu"], "name": stored["name"], "memory_slices": stored["grid"], **drawn}


class RelocationPlanOut(serializers.ModelSerializer[RelocationPlan]):
    """Plan of relocations, with gain and cost; only a proposal until it is accepted."""

    cluster = serializers.CharField(source="cluster_id")
    cluster_name = serializers.CharField(source="cluster.name")
    gpu_model = serializers.CharField(source="gpu_model_id")
    room_for = serializers.CharField(
        read_only=True, help_text="ID of the queued lease that the plan makes room for; empty for none."
    )
    relocations = RelocationOut(many=True, source="moves")
    state_since = serializers.DateTimeField(source="state_at")
    state_reason = serializers.CharField(source="why")
    gpus = serializers.SerializerMethodField()
    entries = serializers.SerializerMethodField()

    class Meta:
        model = RelocationPlan
        fields = ("id", "cluster", "cluster_name", "gpu_model", "reason", "room_for", "cost_s",
                  "gain_milli", "gpus", "state", "state_since", "state_reason", "proposed_at", "not_before",
                  "relocations", "entries")  # fmt: skip

    @extend_schema_field(PlannedGpuOut(many=True))
    def get_gpus(self, plan: RelocationPlan) -> list[dict[str, Any]]:
        """Return its GPUs with the slices on them."""
        return [_planned_gpu(each) for each in plan.gpus]

    @extend_schema_field(RelocationEntryOut(many=True))
    def get_entries(self, plan: RelocationPlan) -> Any:
        """Return the steps of the plan and of its relocations, in order."""
        return RelocationEntryOut(sorted(plan.entries.all(), key=lambda entry: entry.seq), many=True).data


class PlanningOut(serializers.Serializer[Any]):
    cluster_count = serializers.IntegerField(help_text="How many clusters are planned.")


class RelocationPlanChange(StrictSerializer):
    """New state of a plan and its reason, for its history and the audit log."""

    state = serializers.ChoiceField(choices=list(DECISIONS))
    reason = serializers.CharField(max_length=eviction.MAX_REASON_LENGTH)


class RelocationPlanViewSet(CrossTenantViewSet, ETagViewSet):
    """Relocation plans that are proposed, in progress or finished."""

    area = "fleet"
    serializer_class, audit_action = RelocationPlanOut, "relocation_plans"
    rows = RelocationPlan.objects.select_related("cluster").prefetch_related(
        Prefetch("moves", Relocation.objects.select_related("lease").order_by("n")), "entries"
    )
    sorts = ("-id", "id", "proposed_at", "-proposed_at")
    filters = {
        "cluster": QueryFilter("cluster_id"),
        "gpu_model": QueryFilter("gpu_model_id"),
        "state": QueryFilter("state", choices=tuple(state.value for state in RelocationPlanState)),
    }

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Return one with its ETag, which changes with every step of the plan."""
        with self.read_scope():
            return self.tagged(self.get_object())

    @extend_schema(request=None, responses={202: PlanningOut})
    @idempotent()
    def create(self, request: Request) -> Response:
        """Have every cluster planned anew; proposals appear in the list, and change nothing until accepted."""
        clusters = list(Cluster.objects.order_by("name"))
        for cluster in clusters:
            plan_proposals.request_planning(cluster, **self.by)
        return Response({"cluster_count": len(clusters)}, status=202)

    @extend_schema(request=RelocationPlanChange)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Accept or decline a proposal, or cancel an accepted plan.

        A cancelled plan becomes `cancelled` once no relocation is in progress.
        """
        plan = self.get_object()
        wanted = validated_body(RelocationPlanChange, request)
        why = eviction.clean_reason(wanted["reason"])
        DECISIONS[wanted["state"]](plan, why=why, **self.by)
        with self.read_scope():
            return self.tagged(self.get_queryset().get(pk=plan.pk))
