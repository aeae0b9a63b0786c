"""The fleet: for operators only. A tenant is told that there is no such thing."""

from typing import Any, ClassVar

from django.conf import settings
from django.db.models import Model, QuerySet
from django.http import Http404
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.viewsets import GenericViewSet

from broker.models import Cluster, Gpu, Health, LayoutPolicy, Node, NodeState
from tenants.api.filters import Filter, Whitelist
from tenants.portal.doors import has_second_factor


class OperatorSession(SessionAuthentication):
    """The session of somebody who is signed in, of a tenant or of none."""

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        user = getattr(request._request, "user", None)
        return (user, None) if user is not None and user.is_authenticated and user.is_active else None

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="gpubroker"'  # so that nobody signed in is told 401, not 403


class OperatorScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "broker.api.fleet.OperatorSession"
    name = "operator"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "An operator's session.",
        }


class IsOperator(BasePermission):
    """Let operators in, with their second factor where it is demanded; to others nothing is here."""

    def has_permission(self, request: Request, view: Any) -> bool:
        user = request.user
        if not getattr(user, "is_authenticated", False):
            return False
        if not user.is_staff or (settings.OPERATORS_NEED_MFA and not has_second_factor(user)):
            raise Http404
        return True


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


class FleetViewSet(ListModelMixin, RetrieveModelMixin, GenericViewSet[Any]):
    """A read-only collection of what stands in the racks."""

    authentication_classes = [OperatorSession]
    permission_classes = [IsOperator]
    filter_backends = [Whitelist]
    filters: ClassVar[dict[str, Filter]] = {}
    sorts: ClassVar[tuple[str, ...]] = ("id", "-id")
    search_in: ClassVar[tuple[str, ...]] = ()
    parameters: ClassVar[frozenset[str]] = frozenset()
    rows: ClassVar[type[Model]]

    def get_queryset(self) -> QuerySet[Any]:
        return self.rows._default_manager.all()


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
