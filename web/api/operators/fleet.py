"""Operators' API of clusters, nodes and GPUs.

For tenants these addresses do not exist (404).
"""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from broker.models import Cluster, ClusterExamination, Gpu, GpuHealth, LayoutPolicy, Node, NodeState
from broker.provisioners.kubernetes.doctor.findings import CheckOutcome
from broker.services.repartition import repartition_planner
from broker.services.repartition.repartition_pools import load_repartition_pools
from web.api.base_views import OLDEST_FIRST, complete_page
from web.api.lease_serializers import CompletePage, page_of
from web.api.operators.base_views import OperatorViewSet
from web.api.operators.layout_changes import NodeLayoutOut, pool_rows
from web.http.filters import QueryFilter


class ClusterOut(serializers.ModelSerializer[Cluster]):
    class Meta:
        model = Cluster
        fields = ("id", "name", "region", "provisioner", "allow_shared_gpus", "created_at")


class NodeOut(serializers.ModelSerializer[Node]):
    cluster = serializers.CharField(source="cluster_id")

    class Meta:
        model = Node
        fields = ("id", "name", "cluster", "state", "state_since", "unschedulable_reason", "refused_until",
                  "refused_reason", "resource_shortage", "inventory_problem", "cpu_milli", "memory_mib",
                  "scratch_mib")  # fmt: skip


class GpuOut(serializers.ModelSerializer[Gpu]):
    node = serializers.CharField(source="node_id")
    gpu_model = serializers.CharField(source="gpu_model_id")

    class Meta:
        model = Gpu
        fields = ("id", "node", "index", "gpu_model", "uuid", "layout_policy", "fixed_layout", "health",
                  "health_reason", "health_since")  # fmt: skip


class FindingOut(serializers.Serializer[Any]):
    """Result of one check: what was seen, why it matters, and how to fix it."""

    name = serializers.CharField()
    outcome = serializers.ChoiceField(choices=[each.value for each in CheckOutcome])
    seen = serializers.CharField()
    why = serializers.CharField()
    fix = serializers.CharField()


class ExaminationOut(CompletePage):
    """Result of the last examination; times are null where none was requested or finished."""

    asked_at = serializers.DateTimeField(allow_null=True)
    done_at = serializers.DateTimeField(allow_null=True)
    items = FindingOut(many=True)


class ClusterViewSet(OperatorViewSet):
    """Clusters."""

    serializer_class, rows, sorts, search_in = ClusterOut, Cluster.objects.all(), OLDEST_FIRST, ("name",)
    filters = {"region": QueryFilter("region")}

    @extend_schema(responses=ExaminationOut, filters=False)
    @action(detail=True, pagination_class=None)
    def examination(self, request: Request, pk: str) -> Response:
        """Return the result of the cluster's last examination."""
        last = ClusterExamination.objects.filter(cluster=self.get_object()).first()
        answer = complete_page(last.findings if last else [])
        answer.data |= {"asked_at": last and last.asked_at, "done_at": last and last.done_at}
        return answer

    @extend_schema(responses=page_of(NodeLayoutOut, "NodeLayoutPage"), filters=False)
    @action(detail=True, pagination_class=None)
    def layouts(self, request: Request, pk: str) -> Response:
        """Return nodes with a fixed layout: the current layout and the planned one."""
        cluster = self.get_object()
        latest = repartition_planner.latest_repartitions(cluster)
        pools = load_repartition_pools(cluster.pk, now=self.now)
        return complete_page([row for pool in pools for row in pool_rows(pool, latest)])


class NodeViewSet(OperatorViewSet):
    """Nodes of a cluster."""

    serializer_class, rows, sorts, search_in = NodeOut, Node.objects.all(), OLDEST_FIRST, ("name",)
    filters = {"cluster": QueryFilter("cluster_id"), "state": QueryFilter("state", choices=tuple(NodeState.values))}


class GpuViewSet(OperatorViewSet):
    """GPUs of a node."""

    serializer_class, rows, sorts, search_in = GpuOut, Gpu.objects.all(), OLDEST_FIRST, ("uuid",)
    filters = {
        "node": QueryFilter("node_id"),
        "gpu_model": QueryFilter("gpu_model_id"),
        "health": QueryFilter("health", choices=tuple(GpuHealth.values)),
        "layout_policy": QueryFilter("layout_policy", choices=tuple(LayoutPolicy.values)),
    }
