"""How collecting goes in the whole installation: what has no answer yet, and what waits for a person. As staff."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min, Q

from billing.models import Payment, PaymentStatus

SHOWN = 30


@dataclass(frozen=True, slots=True)
class Waiting:
    """`failing` are those of the pending whose last attempt failed as nobody foresaw."""

    pending: int
    failing: int
    oldest: timedelta | None  # since the first of the pending was opened
    stuck: tuple[Payment, ...]  # those that wait longest
    stuck_in_all: int


def look(*, now: datetime) -> Waiting:
    """Count what is under way and fetch what is stuck, with its invoice and tenant; two queries."""
    rows = Payment.objects.filter(status__in=(PaymentStatus.PENDING, PaymentStatus.STUCK))
    pending = Q(status=PaymentStatus.PENDING)
    found = rows.aggregate(
        pending=Count("pk", filter=pending),
        failing=Count("pk", filter=pending & Q(fell__gt=0)),
        first=Min("opened_at", filter=pending),
        stuck=Count("pk", filter=~pending),
    )
    stuck = rows.exclude(pending).select_related("invoice", "tenant").order_by("stuck_at", "pk")[:SHOWN]
    oldest = now - found["first"] if found["first"] else None
    return Waiting(found["pending"], found["failing"], oldest, tuple(stuck), found["stuck"])
