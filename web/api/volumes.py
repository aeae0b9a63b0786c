"""API of volumes: create, read, delete.

A lease mounts a volume that its request names.
"""

from typing import Any

from django.db.models import OuterRef, Subquery
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from broker.domain.lifecycle.states import VolumeState
from broker.models import Lease, Volume
from broker.services.volumes import volume_lifecycle
from web.api.base_views import ETagViewSet, TenantViewSet, needs, validated_body
from web.api.serializer_fields import NameField, StrictSerializer
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent

VOLUME_STATES = [state.value for state in VolumeState]


class VolumeCreate(StrictSerializer):
    """Request body of a volume."""

    name = NameField()
    project = serializers.CharField(max_length=40)
    size_gib = serializers.IntegerField(min_value=1, max_value=volume_lifecycle.MAX_SIZE_GIB)


class VolumeStatusOut(serializers.Serializer[Volume]):
    """Current status; read-only."""

    state = serializers.ChoiceField(choices=VOLUME_STATES)
    lease = serializers.CharField(
        source="held_by", allow_null=True, help_text="Lease it is attached to, running or stopped."
    )
    cluster = serializers.CharField(
        source="cluster.name", allow_null=True, default=None, help_text="Location; set by its first lease."
    )
    used_at = serializers.DateTimeField(allow_null=True, help_text="When data may first have been written.")


class VolumeOut(serializers.ModelSerializer[Volume]):
    project = serializers.CharField(source="project_id")
    status = VolumeStatusOut(source="*")

    class Meta:
        model = Volume
        fields = ("id", "name", "project", "size_gib", "status", "created_at", "deleted_at", "version")


class VolumeViewSet(ETagViewSet, ListModelMixin, TenantViewSet):
    """Storage that outlives leases.

    One lease at a time uses a volume; it is mounted as the workload's home directory.
    """

    serializer_class = VolumeOut
    rows = Volume.objects.select_related("project", "cluster").annotate(
        held_by=Subquery(Lease.objects.live().filter(volume=OuterRef("pk")).values("pk"))
    )
    project_field = "project"
    changing = ("destroy",)
    sorts = ("-id", "id", "name", "-name")
    search_in = ("name", "id")
    filters = {
        "state": QueryFilter("state", choices=tuple(VOLUME_STATES)),
        "project": QueryFilter("project_id"),
        "below": QueryFilter("project__path", "below"),  # a project and its subtree
    }
    actions_needed = needs("leases.read", "list", "retrieve") | needs("leases.write", "create", "destroy")

    @extend_schema(request=VolumeCreate, responses={201: VolumeOut})
    @idempotent()
    def create(self, request_: Request) -> Response:
        """Create a volume; storage is provisioned when the first lease uses it."""
        wanted: dict[str, Any] = validated_body(VolumeCreate, request_)
        project = self.project_for(wanted.pop("project"))
        volume = volume_lifecycle.create_volume(project=project, **self.by, **wanted)
        volume.held_by = None  # type: ignore[attr-defined]  # as the list annotates it
        return self.tagged(volume, status=201, Location=f"/api/v1/volumes/{volume.pk}")

    @extend_schema(responses={202: VolumeOut, 200: VolumeOut})
    def destroy(self, request_: Request, pk: str) -> Response:
        """Delete a volume and its data; refused while attached to a lease, running or stopped.

        It is deleted once its clusters have deleted it.
        """
        volume = self.get_object()
        self.allow(volume.project.path)
        over = volume.state == VolumeState.DELETED
        volume_lifecycle.delete_volume(volume, **self.by)
        return self.tagged(self.get_queryset().get(pk=volume.pk), status=200 if over else 202)
