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
from broker.services.clusters.registration import cluster_examination
from broker.services.inventory import hardware
from broker.services.leases.lifecycle import eviction
from broker.services.repartition import repartition_planner
from broker.services.repartition.repartition_pools import load_repartition_pools
from tenants.services.errors import ProblemError
from web.api.base_views import OLDEST_FIRST, complete_page, validated_body
from web.api.lease_serializers import CompletePage, page_of
from web.api.operators.base_views import OperatorAct, OperatorViewSet, ReasonIn, require_field
from web.api.operators.cluster_acts import ClusterActs, ClusterOut
from web.api.operators.layout_changes import NodeLayoutOut, pool_rows
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent


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


class NodeChange(StrictSerializer):
    """State of a node, as an operator sets it, and the reason for its history."""

    state = serializers.ChoiceField(choices=NodeState.choices, help_text="`lost` is for simulated nodes.")
    reason = serializers.CharField(max_length=eviction.MAX_REASON_LENGTH)


class EvictionOut(serializers.Serializer[Any]):
    released = serializers.ListField(child=serializers.CharField(), help_text="IDs of the leases that were released.")


class FindingOut(serializers.Serializer[Any]):
    """Result of one check: what was found, why it matters, and how to fix it."""

    name = serializers.CharField()
    outcome = serializers.ChoiceField(choices=[each.value for each in CheckOutcome])
    found = serializers.CharField(source="seen")
    explanation = serializers.CharField(source="why")
    fix = serializers.CharField()


class NotSimulated(ProblemError):
    code, status, title = "not-simulated", 409, "Node loss can be simulated on simulated clusters only"


class ExaminationOut(CompletePage):
    """Result of the last examination; times are null where none was requested or finished."""

    requested_at = serializers.DateTimeField(allow_null=True)
    done_at = serializers.DateTimeField(allow_null=True)
    items = FindingOut(many=True)


class ClusterViewSet(ClusterActs, OperatorViewSet):
    """Clusters."""

    area = "fleet"
    serializer_class, rows, sorts, search_in = ClusterOut, Cluster.objects.all(), OLDEST_FIRST, ("name",)
    filters = {"region": QueryFilter("region")}

    @extend_schema(responses=ExaminationOut, filters=False)
    @action(detail=True, pagination_class=None)
    def examination(self, request: Request, pk: str) -> Response:
        """Return the result of the cluster's last examination."""
        last = ClusterExamination.objects.filter(cluster=self.get_object()).first()
        answer = complete_page(FindingOut(last.findings if last else [], many=True).data)
        answer.data |= {"requested_at": last and last.asked_at, "done_at": last and last.done_at}
        return answer

    @extend_schema(request=None, responses={202: None}, filters=False)
    @examination.mapping.post
    @idempotent()
    def examine(self, request: Request, pk: str) -> Response:
        """Examine the cluster anew: about fifty checks that change nothing."""
        cluster_examination.request_examination(self.find_row(), **self.by)
        return Response(status=202)

    @extend_schema(responses=page_of(NodeLayoutOut, "NodeLayoutPage"), filters=False)
    @action(detail=True, pagination_class=None)
    def layouts(self, request: Request, pk: str) -> Response:
        """Return nodes with a fixed layout: the current layout and the planned one."""
        cluster = self.get_object()
        latest = repartition_planner.latest_repartitions(cluster)
        pools = load_repartition_pools(cluster.pk, now=self.now)
        return complete_page([row for pool in pools for row in pool_rows(pool, latest)])

    @extend_schema(request=None, responses={202: None}, filters=False)
    @layouts.mapping.post
    @idempotent()
    def plan_layouts(self, request: Request, pk: str) -> Response:
        """Have the cluster's layouts planned anew; the plans appear as layout changes."""
        repartition_planner.request_planning(self.find_row(), **self.by)
        return Response(status=202)


class NodeViewSet(OperatorViewSet):
    """Nodes of a cluster."""

    area = "fleet"
    serializer_class, rows, sorts, search_in = NodeOut, Node.objects.select_related("cluster"), OLDEST_FIRST, ("name",)
    filters = {"cluster": QueryFilter("cluster_id"), "state": QueryFilter("state", choices=tuple(NodeState.values))}

    @OperatorAct(NodeChange)
    def partial_update(self, node: Node, body: dict[str, Any]) -> Node:
        """Cordon or drain a node, or return it (`ready`); its leases go on."""
        state, reason = NodeState(require_field(body, "state")), require_field(body, "reason")
        if state == NodeState.LOST and node.cluster.provisioner != "simulated":
            raise NotSimulated(
                f"{node.name} is a physical node of {node.cluster.name}. It counts as lost when its heartbeats stop.",
                fix="Cordon or drain it instead.",
            )
        hardware.set_node_state(node, state, reason=eviction.clean_reason(reason), **self.by)
        return node

    @extend_schema(request=ReasonIn, responses=EvictionOut, filters=False)
    @action(detail=True, methods=["post"], url_path="release-leases")
    @idempotent()
    def release_leases(self, request: Request, pk: str) -> Response:
        """Release every lease on a node; each tenant sees the reason."""
        node, why = self.find_row(), validated_body(ReasonIn, request)["reason"]
        ended = eviction.evict_node_leases(node, why=why, **self.by)
        return Response({"released": [lease.pk for lease in ended]})


class GpuViewSet(OperatorViewSet):
    """GPUs of a node."""

    area = "fleet"
    serializer_class, rows, sorts, search_in = GpuOut, Gpu.objects.all(), OLDEST_FIRST, ("uuid",)
    filters = {
        "node": QueryFilter("node_id"),
        "gpu_model": QueryFilter("gpu_model_id"),
        "health": QueryFilter("health", choices=tuple(GpuHealth.values)),
        "layout_policy": QueryFilter("layout_policy", choices=tuple(LayoutPolicy.values)),
    }
