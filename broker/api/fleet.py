"""The fleet: for operators only. A tenant is told that there is no such thing."""

from rest_framework import serializers

from broker.models import Cluster, Gpu, Health, LayoutPolicy, Node, NodeState
from tenants.api.filters import Filter
from tenants.api.operators import FleetViewSet


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


class Clusters(FleetViewSet):
    """Clusters."""

    serializer_class, rows, search_in = ClusterOut, Cluster, ("name",)
    filters = {"region": Filter("region")}


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
