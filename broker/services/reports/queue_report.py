"""The queue of all tenants, oldest first. Must run as staff."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce

from broker.models import Lease
from broker.services.queue.starvation_guard import MAX_WAIT
from ports.postgres.sql_statements import query_rows

PAGE_SIZE = 100


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


@dataclass(frozen=True, slots=True)
class QueuePage:
    """A page of the queue; `after` is the cursor of the next page."""

    leases: list[Lease]
    after: str


def load_queue_figures(*, now: datetime) -> QueueFigures:
    """Return the queue's length, with the longest and the 95th-percentile wait.

    Leases whose start is planned for later do not wait yet.
    """
    ((count, first, slow),) = query_rows("broker/reports/queue_figures", {"now": now})
    return QueueFigures(count, now - first if first else None, now - slow if slow else None)


def load_queue_page(*, after: str = "", limit: int = PAGE_SIZE) -> QueuePage:
    """Return queued leases, oldest first, with tenant, project and offering.

    `after` is the id of the lease to continue behind.
    """
    rows = queued_leases()
    last = Lease.objects.filter(pk=after).first() if after else None
    if last:
        rows = rows.filter(Q(since__gt=last.queues_since) | Q(since=last.queues_since, id__gt=last.pk))
    found = list(rows[: limit + 1])
    return QueuePage(found[:limit], found[limit - 1].pk if len(found) > limit else "")


def queued_leases() -> QuerySet[Lease]:
    """Return queued leases, oldest first, with tenant, project and offering."""
    queued = Lease.objects.filter(state="queued").annotate(since=Coalesce("requeued_at", "created_at"))
    return queued.select_related("tenant", "project", "offering").order_by("since", "id")
