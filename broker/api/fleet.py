"""The fleet: for operators only. A tenant is told that there is no such thing."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from broker.api.cuts import NodeCutOut, rows_of
from broker.api.serializers import Whole
from broker.models import Cluster, Examination, Gpu, Health, LayoutPolicy, Node, NodeState
from broker.provisioners.kubernetes.doctor.findings import Outcome
from broker.services.layouts import planning
from broker.services.layouts.pools import pools_of
from tenants.api.filters import Filter
from tenants.api.operators import FleetViewSet, whole


class ClusterOut(serializers.ModelSerializer[Cluster]):
    class Meta:
        model = Cluster
        fields = ("id", "name", "region", "provisioner", "shares_soft_cards", "created_at")


class NodeOut(serializers.ModelSerializer[Node]):
    cluster = serializers.CharField(source="cluster_id")

    class Meta:
        model = Node
        fields = ("id", "name", "cluster", "state", "state_since")


class GpuOut(serializers.ModelSerializer[Gpu]):
    node = serializers.CharField(source="node_id")
    gpu_model = serializers.CharField(source="gpu_model_id")

    class Meta:
        model = Gpu
        fields = (
            "id",
            "node",
            "index",
            "gpu_model",
            "uuid",
            "layout_policy",
            "fixed_layout",
            "health",
            "health_reason",
            "health_since",
        )


class FindingOut(serializers.Serializer[Any]):
    """The answer to one check: what was seen, why it matters, and what to do about it."""

    name = serializers.CharField()
    outcome = serializers.ChoiceField(choices=[each.value for each in Outcome])
    seen = serializers.CharField()
    why = serializers.CharField()
    fix = serializers.CharField()


class Findings(Whole):
    """What the last examination found; the moments are null where none was asked for or done."""

    asked_at = serializers.DateTimeField(allow_null=True)
    done_at = serializers.DateTimeField(allow_null=True)
    items = FindingOut(many=True)


class NodeCuts(Whole):
    items = NodeCutOut(many=True)


class Clusters(FleetViewSet):
    """Clusters."""

    serializer_class, rows, search_in = ClusterOut, Cluster, ("name",)
    filters = {"region": Filter("region")}

    @extend_schema(responses=Findings, filters=False)
    @action(detail=True, pagination_class=None)
    def examination(self, request: Request, pk: str) -> Response:
        """Return what its last examination found."""
        last = Examination.objects.filter(cluster=self.get_object()).first()
        answer = whole(last.findings if last else [])
        answer.data |= {"asked_at": last and last.asked_at, "done_at": last and last.done_at}
        return answer

    @extend_schema(responses=NodeCuts, filters=False)
    @action(detail=True, pagination_class=None)
    def layouts(self, request: Request, pk: str) -> Response:
        """Return its nodes whose cut is fixed: how they are cut, and what they become."""
        cluster = self.get_object()
        latest = planning.latest(cluster)
        pools = pools_of(cluster.pk, now=self.now)
        return whole([row for pool in pools for row in rows_of(pool, latest)])


class Nodes(FleetViewSet):
    """Machines of a cluster."""

    serializer_class, rows, search_in = NodeOut, Node, ("name",)
    filters = {
        "cluster": Filter("cluster_id"),
        "state": Filter("state", choices=tuple(NodeState.values)),
    }


class Gpus(FleetViewSet):
    """Cards of a node."""

    serializer_class, rows, search_in = GpuOut, Gpu, ("uuid",)
    filters = {
        "node": Filter("node_id"),
        "gpu_model": Filter("gpu_model_id"),
        "health": Filter("health", choices=tuple(Health.values)),
        "layout_policy": Filter("layout_policy", choices=tuple(LayoutPolicy.values)),
    }
