"""Volumes: made, read, deleted. A lease takes one along by naming it when it is asked for."""

from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from broker.domain.states import VolumeState
from broker.models import Lease, Volume
from broker.services.volumes import keeping
from tenants.api.etag import Etagged
from tenants.api.fields import Name, Strict
from tenants.api.filters import Filter
from tenants.api.idempotency import idempotent
from tenants.api.views import TenantViewSet, shape

VOLUME_STATES = [state.value for state in VolumeState]


class VolumeWanted(Strict):
    """What a volume is made of."""

    name = Name()
    project = serializers.CharField(max_length=40)
    size_gib = serializers.IntegerField(min_value=1, max_value=keeping.MOST_GIB)


class VolumeStatus(serializers.Serializer[Volume]):
    """Where it stands; nothing of it can be written."""

    state = serializers.ChoiceField(choices=VOLUME_STATES)
    lease = serializers.CharField(source="held_by", allow_null=True, help_text="Who has it, stopped or not.")
    cluster = serializers.CharField(
        source="cluster.name",
        allow_null=True,
        default=None,
        help_text="Where it lies, from its first lease on.",
    )
    used_at = serializers.DateTimeField(allow_null=True, help_text="Since when there may be something on it.")


class VolumeOut(serializers.ModelSerializer[Volume]):
    project = serializers.CharField(source="project_id")
    status = VolumeStatus(source="*")

    class Meta:
        model = Volume
        fields = ("id", "name", "project", "size_gib", "status", "created_at", "deleted_at", "version")


class Volumes(Etagged, ListModelMixin, TenantViewSet):
    """Storage that outlives leases. One lease at a time has it, and it is mounted at the home of what runs."""

    serializer_class = VolumeOut
    project_field = "project"
    changing = ("destroy",)
    sorts = ("-id", "id", "name", "-name")
    search_in = ("name", "id")
    filters = {
        "state": Filter("state", choices=tuple(VOLUME_STATES)),
        "project": Filter("project_id"),
        "below": Filter("project__path", "below"),  # a project with all below it
    }
    actions_needed = {
        "list": "leases.read",
        "retrieve": "leases.read",
        "create": "leases.write",
        "destroy": "leases.write",
    }

    def get_queryset(self) -> QuerySet[Volume]:
        holder = Lease.objects.live().filter(volume=OuterRef("pk")).values("pk")
        rows = Volume.objects.select_related("project", "cluster").annotate(held_by=Subquery(holder))
        return self.visible(rows)

    @extend_schema(request=VolumeWanted, responses={201: VolumeOut})
    @idempotent()
    def create(self, request_: Request) -> Response:
        """Make a volume; its cluster makes it when the first lease uses it."""
        wanted: dict[str, Any] = shape(VolumeWanted, request_)
        project = self.project_for(wanted.pop("project"))
        volume = keeping.create(project=project, actor=self.request.actor, now=self.now, **wanted)
        volume.held_by = None  # type: ignore[attr-defined]  # as the list annotates it
        return self.tagged(volume, status=201, Location=f"/api/v1/volumes/{volume.pk}")

    @extend_schema(responses={202: VolumeOut, 200: VolumeOut})
    def destroy(self, request_: Request, pk: str) -> Response:
        """Delete it with all that is on it, once its clusters have; refused while a lease has it."""
        volume = self.get_object()
        self.allow(volume.project.path)
        over = volume.state == VolumeState.DELETED
        keeping.delete(volume, actor=self.request.actor, now=self.now)
        return self.tagged(self.get_queryset().get(pk=volume.pk), status=200 if over else 202)
