"""The tenant itself and its tree of projects."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.api.etag import Etagged
from tenants.api.filters import Filter
from tenants.api.idempotency import idempotent
from tenants.api.serializers import ProjectChange, ProjectOut, ProjectWanted, TenantChange, TenantOut
from tenants.api.views import TenantViewSet, shape
from tenants.models import Project, Tenant
from tenants.services import projects, tenants


class Tenants(Etagged, ListModelMixin, TenantViewSet):
    """The tenant you are in."""

    serializer_class = TenantOut
    actions_needed = {"list": "tenant.read", "retrieve": "tenant.read", "partial_update": "tenant.write"}

    def get_queryset(self) -> Any:
        return Tenant.objects.filter(pk=self.request.tenant.pk)

    @extend_schema(request=TenantChange)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Rename the tenant or move it to another time zone."""
        self.allow()
        tenant = self.get_object()
        wanted = shape(TenantChange, request, partial=True)
        return self.tagged(tenants.change(tenant, actor=self.request.actor, now=self.now, **wanted))


class Projects(Etagged, ListModelMixin, TenantViewSet):
    """Projects form a tree; a role or quota on one reaches all below it."""

    serializer_class = ProjectOut
    project_field = "pk"
    sorts = ("-id", "id", "name", "-name")
    search_in = ("name",)
    filters = {
        "parent": Filter("parent_id"),
        "archived": Filter("archived_at__isnull", "flag_not"),
    }
    actions_needed = {
        "list": "projects.read",
        "retrieve": "projects.read",
        "create": "projects.write",
        "partial_update": "projects.write",
        "archive": "projects.write",
    }
    changing = ("partial_update",)

    def get_queryset(self) -> Any:
        return self.visible(Project.objects.all())

    @extend_schema(request=ProjectWanted, responses={201: ProjectOut})
    @idempotent()
    def create(self, request: Request) -> Response:
        """Make a project below another."""
        wanted = shape(ProjectWanted, request)
        project = projects.create(
            parent=self.project_for(wanted["parent"]),
            name=wanted["name"],
            actor=self.request.actor,
            now=self.now,
        )
        return self.tagged(project, status=201, Location=f"/api/v1/projects/{project.pk}")

    @extend_schema(request=ProjectChange)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Rename a project."""
        project = self.get_object()
        self.allow(project.path)
        wanted = shape(ProjectChange, request)
        projects.rename(project, name=wanted["name"], actor=self.request.actor, now=self.now)
        return self.tagged(project)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    @idempotent()
    def archive(self, request: Request, pk: str) -> Response:
        """Close a project to new leases; what runs in it ends in its own time."""
        project = self.get_object()
        self.allow(project.path)
        return self.tagged(projects.archive(project, actor=self.request.actor, now=self.now))
