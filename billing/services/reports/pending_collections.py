"""Collection status of the whole installation: pending and stuck transactions.

Requires staff scope.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min, Q, QuerySet
from django.db.models.functions import Coalesce

from billing.models import Payment, PaymentStatus, Refund, TopUp
from ports import payments


@dataclass(frozen=True, slots=True)
class PendingCollections:
    """Numbers of pending and stuck transactions; `failing` are pending ones whose last attempt failed."""

    pending: int
    failing: int
    oldest: timedelta | None  # age of the oldest pending one
    stuck: int  # including those of a gateway that is no longer set
    topups: int  # the same of top-ups
    refunds: int  # and of refunds


def read_pending_collections(*, now: datetime) -> PendingCollections:
    """Count pending and stuck transactions; three queries."""
    rows, person = Payment.objects.filter(status__in=(PaymentStatus.PENDING, PaymentStatus.STUCK)), _needs_a_person()
    found = rows.aggregate(
        pending=Count("pk", filter=~person),
        failing=Count("pk", filter=~person & Q(consecutive_failures__gt=0)),
        first=Min("opened_at", filter=~person),
        stuck=Count("pk", filter=person),
    )
    return PendingCollections(
        found["pending"],
        found["failing"],
        now - found["first"] if found["first"] else None,
        found["stuck"],
        TopUp.objects.filter(person).count(),
        Refund.objects.filter(person).count(),
    )


def stuck_payments() -> QuerySet[Payment]:
    """Return the payments that need a person, oldest first."""
    rows = Payment.objects.filter(_needs_a_person()).select_related("invoice__period", "tenant")
    return rows.order_by(Coalesce("stuck_at", "opened_at"), "pk")


def stuck_topups() -> QuerySet[TopUp]:
    """Return the top-ups that need a person, oldest first."""
    return TopUp.objects.filter(_needs_a_person()).select_related("tenant").order_by("opened_at", "pk")


def stuck_refunds() -> QuerySet[Refund]:
    """Return the refunds that need a person, oldest first."""
    rows = Refund.objects.filter(_needs_a_person()).select_related("tenant", "payment__invoice__period")
    return rows.order_by("opened_at", "pk")


def _needs_a_person() -> Q:
    gateway = payments.gateway()
    gone = ~Q(gateway=gateway.name if gateway else "")
    return Q(status=PaymentStatus.STUCK) | Q(status=PaymentStatus.PENDING, attempts__gt=0) & gone
