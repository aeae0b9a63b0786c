"""Operators' API of node layouts: current and planned MIG layouts, and changes step by step."""

from collections.abc import Callable, Mapping
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from broker.domain.repartition.gpu_layouts import GpuLayout
from broker.domain.repartition.repartition_steps import RepartitionStep
from broker.models import Repartition, RepartitionLogEntry
from broker.models.repartitions import layouts_from_stored
from broker.services.leases.lifecycle import eviction
from broker.services.repartition import repartition_decisions
from broker.services.repartition.repartition_pools import RepartitionPool
from web.api.operators.base_views import OperatorAct, OperatorViewSet, require_field
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter


class GpuLayoutOut(serializers.Serializer[Any]):
    """MIG layout of one GPU: its index in the node, and its slices per profile."""

    gpu_index = serializers.IntegerField()
    profiles = serializers.DictField(child=serializers.IntegerField())


def layout_rows(cuts: Mapping[int, GpuLayout]) -> list[dict[str, Any]]:
    return [{"gpu_index": index, "profiles": dict(cut.counts)} for index, cut in sorted(cuts.items())]


class GpuLayoutChangeOut(serializers.Serializer[Any]):
    """One GPU of a layout change: its layout before and after."""

    gpu_index = serializers.IntegerField()
    profiles_before = serializers.DictField(child=serializers.IntegerField())
    profiles_after = serializers.DictField(child=serializers.IntegerField())


class LayoutStepOut(serializers.ModelSerializer[RepartitionLogEntry]):
    reason = serializers.CharField(source="why")

    class Meta:
        model = RepartitionLogEntry
        fields = ("seq", "step", "at", "reason", "actor_label")


class LayoutChangeOut(serializers.ModelSerializer[Repartition]):
    """A change of a node's MIG layout."""

    node = serializers.CharField(source="node_id")
    node_name = serializers.CharField(source="node.name")
    cluster = serializers.CharField(source="node.cluster_id")
    step_since = serializers.DateTimeField(source="step_at")
    step_reason = serializers.CharField(source="why")
    attempt_count = serializers.IntegerField(source="attempts")
    gpus = serializers.SerializerMethodField()
    steps = serializers.SerializerMethodField()

    class Meta:
        model = Repartition
        fields = ("id", "cluster", "node", "node_name", "step", "step_since", "step_reason", "planned_at",
                  "attempt_count", "gpus", "steps")  # fmt: skip

    @extend_schema_field(GpuLayoutChangeOut(many=True))
    def get_gpus(self, change: Repartition) -> list[dict[str, Any]]:
        """Return every GPU of the node, before and after."""
        before, nothing = layouts_from_stored(change.before), GpuLayout()
        return [
            {
                "gpu_index": index,
                "profiles_before": dict(before.get(index, nothing).counts),
                "profiles_after": dict(cut.counts),
            }
            for index, cut in sorted(change.layouts.items())
        ]

    @extend_schema_field(LayoutStepOut(many=True))
    def get_steps(self, change: Repartition) -> Any:
        """Return its steps in order."""
        steps = sorted(change.steps.all(), key=lambda step: step.seq)
        return LayoutStepOut(steps, many=True).data


DECISIONS: dict[str, Callable[..., object]] = {
    "approve": repartition_decisions.approve_repartition,
    "cancel": repartition_decisions.cancel_repartition,
    "retry": repartition_decisions.retry_repartition,
    "roll_back": repartition_decisions.roll_back_repartition,
}


class LayoutDecision(StrictSerializer):
    """Decision on a layout change, and the reason for its history."""

    decision = serializers.ChoiceField(choices=list(DECISIONS))
    reason = serializers.CharField(max_length=eviction.MAX_REASON_LENGTH)


class LayoutChangeViewSet(OperatorViewSet):
    """Layout changes that are planned, in progress or finished."""

    area = "fleet"
    serializer_class = LayoutChangeOut
    rows = Repartition.objects.select_related("node").prefetch_related("steps")
    sorts = ("-id", "id", "planned_at", "-planned_at")
    filters = {
        "node": QueryFilter("node_id"),
        "cluster": QueryFilter("node__cluster_id"),
        "step": QueryFilter("step", choices=tuple(step.value for step in RepartitionStep)),
    }

    @OperatorAct(LayoutDecision)
    def partial_update(self, change: Repartition, body: dict[str, Any]) -> Repartition:
        """Approve or cancel a planned change; retry or roll back one that failed."""
        decide = DECISIONS[require_field(body, "decision")]
        decide(change, why=eviction.clean_reason(require_field(body, "reason")), **self.by)
        return change


class CurrentLayoutChangeOut(serializers.Serializer[Any]):
    id = serializers.CharField()
    step = serializers.CharField()
    step_since = serializers.DateTimeField()
    step_reason = serializers.CharField()
    gpus = GpuLayoutOut(many=True)


class NodeLayoutOut(serializers.Serializer[Any]):
    """A node with a fixed layout; `change` is null if the layout stays."""

    node = serializers.CharField()
    name = serializers.CharField()
    gpu_model = serializers.CharField()
    gpus = GpuLayoutOut(many=True)
    change = CurrentLayoutChangeOut(allow_null=True)


def pool_rows(pool: RepartitionPool, latest: Mapping[str, Repartition]) -> list[dict[str, Any]]:
    """Return a pool's nodes as rows; `latest` holds each node's current layout change."""
    views = {view.name: {gpu.index: gpu.layout for gpu in view.gpus} for view in pool.views}
    rows = []
    for pk, node in pool.nodes.items():
        change = latest.get(pk)
        current_change = change and {
            "id": change.pk,
            "step": change.step,
            "step_since": change.step_at,
            "step_reason": change.why,
            "gpus": layout_rows(change.layouts),
        }
        gpus = layout_rows(views[pk])
        rows.append(
            {"node": pk, "name": node.name, "gpu_model": pool.model, "gpus": gpus, "change": current_change or None}
        )
    return rows
