"""API of lease arrays: request many equal leases at once, read and release them."""

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from broker.models import LeaseArray
from broker.services.leases import lease_arrays
from broker.services.leases.lease_arrays import MAX_SIZE
from broker.services.leases.lease_requests import LeaseRequest
from web.api.base_views import TenantViewSet, needs, validated_body
from web.api.lease_serializers import LeaseCreate, RequesterOut
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent


class LeaseArrayCreate(LeaseCreate):
    """Request body of a lease, and how many of them."""

    array_size = serializers.IntegerField(
        min_value=1,
        max_value=MAX_SIZE,
        help_text="Number of leases. Each finds its index from 0 in `GPUBROKER_ARRAY_INDEX`, and this number in"
        " `GPUBROKER_ARRAY_SIZE`.",
    )
    quote = None  # type: ignore[assignment]  # DRF's way to omit a field: a quote is for one lease
    volume = None  # type: ignore[assignment]  # and a volume is used by one lease


class LeaseArrayOut(serializers.ModelSerializer[LeaseArray]):
    """An array, and how many of its leases are in each state."""

    project = serializers.CharField(source="project_id")
    requested_by = serializers.SerializerMethodField()
    states = serializers.SerializerMethodField()

    class Meta:
        model = LeaseArray
        fields = ("id", "name", "project", "size", "states", "requested_by", "created_at")

    @extend_schema_field(RequesterOut)
    def get_requested_by(self, array: LeaseArray) -> dict[str, str]:
        """Return who requested it."""
        return {"id": array.requested_by, "label": array.requested_by_label}

    def get_states(self, array: LeaseArray) -> dict[str, int]:
        """Return the number of leases by state."""
        found: dict[str, int] = self.context["states"].get(array.pk, {})
        return found


class LeaseArrayViewSet(ListModelMixin, RetrieveModelMixin, TenantViewSet):
    """Equal leases that were requested together: all of them were queued, or none.

    `GET /leases?array=…` lists them.
    """

    serializer_class = LeaseArrayOut
    rows = LeaseArray.objects.select_related("project")
    project_field = "project"
    sorts = ("-id", "id", "name", "-name")
    search_in = ("name", "id")
    filters = {
        "project": QueryFilter("project_id"),
        "below": QueryFilter("project__path", "below"),  # a project and its subtree
    }
    actions_needed = needs("leases.read", "list", "retrieve") | needs("leases.write", "create", "release")

    def prepare(self, rows: list[Any]) -> list[Any]:
        self.beside = {"states": lease_arrays.count_states(rows)}
        return rows

    @extend_schema(request=LeaseArrayCreate, responses={202: LeaseArrayOut})
    @idempotent(secret=("env",))
    def create(self, request_: Request) -> Response:
        """Request an array of leases, as far as quotas and budgets allow all of them."""
        wanted: dict[str, Any] = validated_body(LeaseArrayCreate, request_)
        project = self.project_for(wanted.pop("project"))
        size = wanted.pop("array_size")
        lease_request = LeaseRequest(offering_id=wanted.pop("offering"), **wanted)
        array = lease_arrays.request_array(lease_request, size=size, project=project, **self.by)
        return self._answer(array, Location=f"/api/v1/lease-arrays/{array.pk}")

    @extend_schema(request=None, responses={202: LeaseArrayOut})
    @action(detail=True, methods=["post"])
    @idempotent()
    def release(self, request_: Request, pk: str) -> Response:
        """End every lease of it that is not over; nothing after this second is charged."""
        array = self.get_object()
        self.allow(array.project.path)
        lease_arrays.release_array(array, **self.by)
        return self._answer(array)

    def _answer(self, array: LeaseArray, **headers: str) -> Response:
        self.prepare([array])
        return Response(self.get_serializer(array).data, status=202, headers=headers)
