"""API of quotas, and of what each project has left."""

from drf_spectacular.utils import extend_schema
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.models import Project, Quota, QuotaKind
from tenants.services import quotas
from web.api.base_views import ETagViewSet, TenantViewSet, needs, validated_body
from web.api.tenant_serializers import QuotaChange, QuotaCreate, QuotaOut, QuotaUsageOut
from web.http.filters import QueryFilter
from web.http.idempotency import idempotent


class QuotaViewSet(ETagViewSet, ListModelMixin, TenantViewSet):
    """Quotas; a lease must fit into every quota from the root to its project."""

    serializer_class = QuotaOut
    rows = Quota.objects.select_related("project")
    project_field = "project"
    sorts = ("-id",)
    filters = {"project": QueryFilter("project_id"), "kind": QueryFilter("kind", choices=tuple(QuotaKind.values))}
    actions_needed = needs("quotas.read", "list", "retrieve") | needs(
        "quotas.write", "create", "partial_update", "destroy"
    )

    @extend_schema(request=QuotaCreate, responses={201: QuotaOut})
    @idempotent()
    def create(self, request: Request) -> Response:
        """Set a quota on a project; a new one counts what is held now."""
        wanted = validated_body(QuotaCreate, request)
        project = self.project_for(wanted["project"])
        quotas.require_rights_above(self.request.roles, project)
        quota = quotas.set_limit(project=project, kind=QuotaKind(wanted["kind"]), limit=wanted["limit"], **self.by)
        return self.tagged(quota, status=201, Location=f"/api/v1/quotas/{quota.pk}")

    @extend_schema(request=QuotaChange)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Change a quota; a limit below current use only stops new leases."""
        quota = self.get_object()
        self.allow(quota.project.path)
        quotas.require_rights_above(self.request.roles, quota.project)
        wanted = validated_body(QuotaChange, request)
        changed = quotas.set_limit(project=quota.project, kind=QuotaKind(quota.kind), limit=wanted["limit"], **self.by)
        return self.tagged(changed)

    def destroy(self, request: Request, pk: str) -> Response:
        """Remove a quota; those above it still apply."""
        quota = self.get_object()
        self.allow(quota.project.path)
        quotas.require_rights_above(self.request.roles, quota.project)
        quotas.remove(quota, **self.by)
        return Response(status=204)


class QuotaUsageViewSet(TenantViewSet):
    """What each project has left; the tightest quota on its path decides."""

    serializer_class = QuotaUsageOut
    rows = Project.objects.open()
    project_field = "pk"
    sorts = ("-id",)
    filters = {"project": QueryFilter("pk")}
    actions_needed = needs("quotas.read", "list")

    def list(self, request: Request) -> Response:
        """Return limit, used and free of every kind, for each project."""
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        rooms = quotas.remaining_quotas(page, now=self.now)
        rows = [{"project": project.pk, "quotas": rooms[project.pk]} for project in page]
        return self.get_paginated_response(QuotaUsageOut(rows, many=True).data)
