"""Quotas of project nodes, and what each project may still take."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.api.etag import Etagged
from tenants.api.filters import Filter
from tenants.api.idempotency import idempotent
from tenants.api.serializers import QuotaChange, QuotaOut, QuotaUsageOut, QuotaWanted
from tenants.api.views import TenantViewSet, shape
from tenants.models import Project, Quota, QuotaKind
from tenants.services import quotas


class Quotas(Etagged, ListModelMixin, TenantViewSet):
    """Ceilings. Every one from the root down to a lease's project must leave room for it."""

    serializer_class = QuotaOut
    project_field = "project"
    filters = {"project": Filter("project_id"), "kind": Filter("kind", choices=tuple(QuotaKind.values))}
    actions_needed = {
        "list": "quotas.read",
        "retrieve": "quotas.read",
        "create": "quotas.write",
        "partial_update": "quotas.write",
        "destroy": "quotas.write",
    }

    def get_queryset(self) -> Any:
        return self.visible(Quota.objects.select_related("project"))

    @extend_schema(request=QuotaWanted, responses={201: QuotaOut})
    @idempotent()
    def create(self, request: Request) -> Response:
        """Set a ceiling on a project; a new one begins with what is held there already."""
        wanted = shape(QuotaWanted, request)
        project = self.project_for(wanted["project"])
        quotas.must_lead_above(self.request.roles, project)
        quota = quotas.set_limit(
            project=project,
            kind=QuotaKind(wanted["kind"]),
            limit=wanted["limit"],
            actor=self.request.actor,
            now=self.now,
        )
        return self.tagged(quota, status=201, Location=f"/api/v1/quotas/{quota.pk}")

    @extend_schema(request=QuotaChange)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a ceiling; below what is in use it only stops new leases."""
        quota = self.get_object()
        self.allow(quota.project.path)
        quotas.must_lead_above(self.request.roles, quota.project)
        wanted = shape(QuotaChange, request)
        changed = quotas.set_limit(
            project=quota.project,
            kind=QuotaKind(quota.kind),
            limit=wanted["limit"],
            actor=self.request.actor,
            now=self.now,
        )
        return self.tagged(changed)

    def destroy(self, request: Request, pk: str) -> Response:
        """Take a ceiling away; those above it still hold."""
        quota = self.get_object()
        self.allow(quota.project.path)
        quotas.must_lead_above(self.request.roles, quota.project)
        quotas.remove(quota, actor=self.request.actor, now=self.now)
        return Response(status=204)


class QuotaUsage(TenantViewSet):
    """What each project may still take: the tightest quota on its path decides."""

    serializer_class = QuotaUsageOut
    project_field = "pk"
    filters = {"project": Filter("pk")}
    actions_needed = {"list": "quotas.read"}

    def get_queryset(self) -> Any:
        return self.visible(Project.objects.open())

    def list(self, request: Request) -> Response:
        """Return limit, used and free of every kind, for each project."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        rooms = quotas.room(page, now=self.now)
        rows = [{"project": project.pk, "quotas": rooms[project.pk]} for project in page]
        return self.get_paginated_response(QuotaUsageOut(rows, many=True).data)
