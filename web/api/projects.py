"""API of the tenant and of its project tree."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from broker.services.leases import project_archive
from tenants.models import Project, Tenant
from tenants.services import projects, tenants
from web.api.base_views import ETagViewSet, TenantViewSet, needs, validated_body
from web.api.tenant_serializers import ProjectChange, ProjectCreate, ProjectOut, TenantChange, TenantOut
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent


class CurrentTenantViewSet(ETagViewSet, ListModelMixin, TenantViewSet):
    """The tenant of the credential."""

    serializer_class = TenantOut
    sorts = ("-id",)
    actions_needed = needs("tenant.read", "list", "retrieve") | needs("tenant.write", "partial_update")

    def get_queryset(self) -> Any:
        return Tenant.objects.filter(pk=self.request.tenant.pk)

    @extend_schema(request=TenantChange)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change the tenant's name or time zone."""
        self.allow()
        tenant = self.get_object()
        wanted = validated_body(TenantChange, request, partial=True)
        return self.tagged(tenants.change(tenant, **self.by, **wanted))


class ProjectViewSet(ETagViewSet, ListModelMixin, TenantViewSet):
    """Projects form a tree; a role or quota on one covers everything below it."""

    serializer_class = ProjectOut
    rows = Project.objects.all()
    project_field = "pk"
    sorts = ("-id", "id", "name", "-name")
    search_in = ("name",)
    filters = {"parent": QueryFilter("parent_id"), "archived": QueryFilter("archived_at__isnull", "flag_not")}
    actions_needed = needs("projects.read", "list", "retrieve") | needs(
        "projects.write", "create", "partial_update", "archive", "unarchive"
    )
    changing = ("partial_update",)

    @extend_schema(request=ProjectCreate, responses={201: ProjectOut})
    @idempotent()
    def create(self, request: Request) -> Response:
        """Create a project below another."""
        wanted = validated_body(ProjectCreate, request)
        project = projects.create(parent=self.project_for(wanted["parent"]), name=wanted["name"], **self.by)
        return self.tagged(project, status=201, Location=f"/api/v1/projects/{project.pk}")

    @extend_schema(request=ProjectChange)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Rename a project."""
        project = self.get_object()
        self.allow(project.path)
        wanted = validated_body(ProjectChange, request)
        projects.rename(project, name=wanted["name"], **self.by)
        return self.tagged(project)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    @idempotent()
    def archive(self, request: Request, pk: str) -> Response:
        """Close a project to all that costs money.

        Active leases go on until their end, others are released. Nothing in it can be launched, started, extended or
        created until it is unarchived. It must have no volumes.
        """
        project = self.get_object()
        self.allow(project.path)
        return self.tagged(project_archive.archive_project(project, **self.by))

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    @idempotent()
    def unarchive(self, request: Request, pk: str) -> Response:
        """Open an archived project again."""
        project = self.get_object()
        self.allow(project.path)
        return self.tagged(projects.unarchive(project, **self.by))
