"""API of queued leases, read-only."""

from typing import Any

from rest_framework.mixins import ListModelMixin

from broker.domain.lifecycle.states import LeaseState
from broker.models import Lease
from broker.services.queue.queue_positions import load_queue_positions
from web.api.base_views import OLDEST_FIRST, TenantViewSet, needs
from web.api.lease_serializers import QueueEntryOut
from web.http.filters import QueryFilter


class QueueEntryViewSet(ListModelMixin, TenantViewSet):
    """Your queued leases, with their queue position and what they wait for."""

    serializer_class = QueueEntryOut
    project_field = "project"
    rows = Lease.objects.filter(state=LeaseState.QUEUED)
    sorts = OLDEST_FIRST
    filters = {"project": QueryFilter("project_id"), "offering": QueryFilter("offering_id")}
    actions_needed = needs("leases.read", "list")

    def prepare(self, rows: list[Any]) -> list[Any]:
        self.beside = {"places": load_queue_positions([row for row in rows if not row.is_scheduled(self.now)])}
        return rows
