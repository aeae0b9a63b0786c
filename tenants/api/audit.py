"""The audit trail of the tenant, newest first."""

from typing import Any

from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.api.filters import Filter
from tenants.api.serializers import AuditOut
from tenants.api.views import TenantViewSet
from tenants.models import AuditEvent


class AuditEvents(ListModelMixin, TenantViewSet):
    """Who changed what. Rows are only ever added."""

    serializer_class = AuditOut
    filters = {
        "action": Filter("action"),
        "actor": Filter("actor_id"),
        "subject": Filter("subject_id"),
        "at__gte": Filter("at__gte", "moment"),
        "at__lt": Filter("at__lt", "moment"),
    }
    search_in = ("action", "actor_label", "subject_label")
    actions_needed = {"list": "audit.read", "retrieve": "audit.read"}

    def get_queryset(self) -> Any:
        self.allow()  # the trail tells of every project, so a role on one is not enough
        return AuditEvent.objects.filter(tenant_id=self.request.tenant.pk)

    def retrieve(self, request: Request, pk: str) -> Response:
        """Return one event."""
        return Response(AuditOut(self.get_object()).data)
