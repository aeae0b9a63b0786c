"""API of the tenant's audit log, newest first."""

from typing import Any

from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.models import AuditEvent
from web.api.base_views import RowViewSet, TenantViewSet, needs
from web.api.tenant_serializers import AuditEventOut
from web.http.filters import QueryFilter


class AuditEventRows(RowViewSet):
    """Audit log, as tenants and operators read it."""

    serializer_class = AuditEventOut
    filters = {
        "action": QueryFilter("action"),
        "actor": QueryFilter("actor_id"),
        "subject": QueryFilter("subject_id"),
        "at__gte": QueryFilter("at__gte", "moment"),
        "at__lt": QueryFilter("at__lt", "moment"),
    }
    search_in = ("action", "actor_label", "subject_label")


class AuditEventViewSet(AuditEventRows, ListModelMixin, TenantViewSet):
    """Who changed what; append-only."""

    sorts = ("-id",)
    actions_needed = needs("audit.read", "list", "retrieve")

    def get_queryset(self) -> Any:
        self.allow()  # the audit log covers every project, so a role on one is not enough
        return AuditEvent.objects.filter(tenant_id=self.request.tenant.pk)

    def retrieve(self, request: Request, pk: str) -> Response:
        """Return one event."""
        return Response(AuditEventOut(self.get_object()).data)
