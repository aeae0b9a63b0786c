"""The queue of all tenants, oldest first. Must run as staff."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.db.models.functions import Coalesce

from broker.models import Lease
from broker.services.queue.starvation_guard import MAX_WAIT
from ports.postgres.sql_statements import query_rows


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """The queue's length and waiting times."""

    waiting: int
    oldest: timedelta | None
    p95: timedelta | None

    @property
    def overdue(self) -> bool:
        """Return whether a lease has waited so long that GPUs are reserved for it."""
        return self.oldest is not None and self.oldest > MAX_WAIT


def load_queue_figures(*, now: datetime) -> QueueFigures:
    """Return the queue's length, with the longest and the 95th-percentile wait.

    Leases whose start is planned for later do not wait yet.
    """
    ((count, first, slow),) = query_rows("broker/reports/queue_figures", {"now": now})
    return QueueFigures(count, now - first if first else None, now - slow if slow else None)


def queued_leases() -> QuerySet[Lease]:
    """Return queued leases, oldest first, with tenant, project and offering."""
    queued = Lease.objects.filter(state="queued").annotate(since=Coalesce("requeued_at", "created_at"))
    return queued.select_related("tenant", "project", "offering").order_by("since", "id")
