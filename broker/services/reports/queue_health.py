"""Queue health: unsent outbox messages and overdue leases. Must run as staff."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Max, Min, Q

from broker.models import Lease
from ports import outbox
from ports.models import OutboxMessage

LATE_AFTER = timedelta(seconds=30)  # the sweep runs every five seconds; six runs in a row were missed


@dataclass(frozen=True, slots=True)
class QueueHealth:
    """Counts of pending work.

    `oldest` is the age of the oldest unsent message; `overdue` leases wait for any worker.
    """

    messages: int
    oldest: timedelta | None
    due_leases: int
    overdue_leases: int
    last_observed_at: datetime | None  # when a worker last observed a lease running
    valkey: bool  # whether it answers

    @property
    def is_late(self) -> bool:
        return self.overdue_leases > 0 or (self.oldest is not None and self.oldest > LATE_AFTER)


def measure_queue_health(*, now: datetime) -> QueueHealth:
    """Count pending work and check that Valkey answers; two queries."""
    pending = OutboxMessage.objects.filter(at__lte=now).aggregate(count=Count("id"), first=Min("at"))
    leases = Lease.objects.live().aggregate(
        due=Count("id", filter=Q(due_at__lte=now)),
        late=Count("id", filter=Q(due_at__lt=now - LATE_AFTER)),
        last_observed_at=Max("seen_at"),
    )
    oldest = now - pending["first"] if pending["first"] else None
    return QueueHealth(
        pending["count"],
        oldest,
        leases["due"],
        leases["late"],
        leases["last_observed_at"],
        outbox.is_broker_reachable(),
    )
