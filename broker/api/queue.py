"""What waits: a read-only view of queued leases."""

from typing import Any

from django.db.models import QuerySet
from rest_framework.mixins import ListModelMixin

from broker.api.serializers import QueueEntryOut
from broker.domain.states import LeaseState
from broker.models import Lease
from broker.services.leases.standing import positions
from tenants.api.filters import Filter
from tenants.api.views import TenantViewSet


class QueueEntries(ListModelMixin, TenantViewSet):
    """Your requests that wait, with their place in the queue and what they wait for."""

    serializer_class = QueueEntryOut
    project_field = "project"
    sorts = ("id", "-id")
    filters = {"project": Filter("project_id"), "offering": Filter("offering_id")}
    actions_needed = {"list": "leases.read"}

    def get_queryset(self) -> QuerySet[Lease]:
        return self.visible(Lease.objects.filter(state=LeaseState.QUEUED))

    def paginate_queryset(self, queryset: Any) -> Any:
        page = super().paginate_queryset(queryset)
        self.places = positions(page or ())
        return page

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "places": getattr(self, "places", {})}
