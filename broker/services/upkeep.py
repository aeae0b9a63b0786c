"""How the product's own errands stand: hints not sent yet, leases nobody has looked at. Must run as staff."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Max, Min, Q

from broker.models import Lease
from ports import doorbell
from ports.models import Ring

LATE = timedelta(seconds=30)  # the sweep looks every five seconds; six of them in a row were missed


@dataclass(frozen=True, slots=True)
class Upkeep:
    """`oldest` is the hint that should have been sent first; `overdue` leases wait for any worker."""

    hints: int
    oldest: timedelta | None
    due: int
    overdue: int
    looked: datetime | None  # when a worker last found a lease alive
    valkey: bool  # whether it answers

    @property
    def late(self) -> bool:
        return self.overdue > 0 or (self.oldest is not None and self.oldest > LATE)


def look(*, now: datetime) -> Upkeep:
    """Count what is under way, and knock at Valkey; two queries."""
    rung = Ring.objects.filter(at__lte=now).aggregate(count=Count("id"), first=Min("at"))
    leases = Lease.objects.live().aggregate(
        due=Count("id", filter=Q(due_at__lte=now)),
        late=Count("id", filter=Q(due_at__lt=now - LATE)),
        looked=Max("seen_at"),
    )
    oldest = now - rung["first"] if rung["first"] else None
    return Upkeep(
        rung["count"], oldest, leases["due"], leases["late"], leases["looked"], doorbell.reachable()
    )
