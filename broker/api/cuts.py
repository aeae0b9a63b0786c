"""How nodes are cut, what is planned for them, and one change step by step; for operators."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from broker.domain.cuts import Cut
from broker.domain.repartition import Step
from broker.models import LayoutChange, LayoutStep
from broker.models.layouts import cuts_from
from broker.services.layouts.pools import Pool
from tenants.api.filters import Filter
from tenants.api.operators import FleetViewSet


class CutOut(serializers.Serializer[Any]):
    """One card: its number in the node, and how many of which profile it is cut into."""

    card = serializers.IntegerField()
    profiles = serializers.DictField(child=serializers.IntegerField())


def written(cuts: Mapping[int, Cut]) -> list[dict[str, Any]]:
    return [{"card": index, "profiles": dict(cut.counts)} for index, cut in sorted(cuts.items())]


class RecutOut(serializers.Serializer[Any]):
    """One card of a change: how it was cut, and what it becomes."""

    card = serializers.IntegerField()
    before = serializers.DictField(child=serializers.IntegerField())
    wanted = serializers.DictField(child=serializers.IntegerField())


class LayoutStepOut(serializers.ModelSerializer[LayoutStep]):
    actor = serializers.CharField(source="actor_label")

    class Meta:
        model = LayoutStep
        fields = ("seq", "step", "at", "why", "actor")


class LayoutChangeOut(serializers.ModelSerializer[LayoutChange]):
    """Cutting a node anew."""

    node = serializers.CharField(source="node_id")
    node_name = serializers.CharField(source="node.name")
    cluster = serializers.CharField(source="node.cluster_id")
    cards = serializers.SerializerMethodField()
    steps = serializers.SerializerMethodField()

    class Meta:
        model = LayoutChange
        fields = (
            "id",
            "cluster",
            "node",
            "node_name",
            "step",
            "step_at",
            "why",
            "planned_at",
            "attempts",
            "cards",
            "steps",
        )

    @extend_schema(responses=RecutOut(many=True))
    def get_cards(self, change: LayoutChange) -> list[dict[str, Any]]:
        """Return every card of the node, before and after."""
        before, nothing = cuts_from(change.before), Cut()
        return [
            {
                "card": index,
                "before": dict(before.get(index, nothing).counts),
                "wanted": dict(cut.counts),
            }
            for index, cut in sorted(change.cuts.items())
        ]

    @extend_schema(responses=LayoutStepOut(many=True))
    def get_steps(self, change: LayoutChange) -> Any:
        """Return its steps, first to last."""
        steps = sorted(change.steps.all(), key=lambda step: step.seq)
        return LayoutStepOut(steps, many=True).data


class LayoutChanges(FleetViewSet):
    """Cuts of nodes that were planned, are under way or are over."""

    serializer_class, rows = LayoutChangeOut, LayoutChange
    sorts = ("-id", "id", "planned_at", "-planned_at")
    filters = {
        "node": Filter("node_id"),
        "cluster": Filter("node__cluster_id"),
        "step": Filter("step", choices=tuple(step.value for step in Step)),
    }

    def get_queryset(self) -> QuerySet[LayoutChange]:
        return LayoutChange.objects.select_related("node").prefetch_related("steps")


class ChangeNow(serializers.Serializer[Any]):
    id = serializers.CharField()
    step = serializers.CharField()
    step_at = serializers.DateTimeField()
    why = serializers.CharField()
    cards = CutOut(many=True)


class NodeCutOut(serializers.Serializer[Any]):
    """A node whose cut is fixed; `change` is null where it stays as it is."""

    node = serializers.CharField()
    name = serializers.CharField()
    gpu_model = serializers.CharField()
    cards = CutOut(many=True)
    change = ChangeNow(allow_null=True)


def rows_of(pool: Pool, latest: Mapping[str, LayoutChange]) -> list[dict[str, Any]]:
    """Write a pool's nodes; `latest` holds the change of each that still matters."""
    views = {view.name: {card.index: card.cut for card in view.cards} for view in pool.views}
    rows = []
    for pk, node in pool.nodes.items():
        change = latest.get(pk)
        told = change and {
            "id": change.pk,
            "step": change.step,
            "step_at": change.step_at,
            "why": change.why,
            "cards": written(change.cuts),
        }
        cards = written(views[pk])
        rows.append(
            {"node": pk, "name": node.name, "gpu_model": pool.model, "cards": cards, "change": told or None}
        )
    return rows
