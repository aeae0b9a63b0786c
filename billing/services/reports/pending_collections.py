"""Collection status of the whole installation: pending and stuck transactions.

Requires staff scope.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from django.db.models import Count, Min, Model, Q, QuerySet
from django.db.models.functions import Coalesce

from billing.models import Payment, PaymentStatus, Refund, TopUp
from ports import payments

MAX_SHOWN = 30
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class PendingCollections:
    """Pending and stuck transactions; `failing` are pending ones whose last attempt failed unexpectedly."""

    pending: int
    failing: int
    oldest: timedelta | None  # age of the oldest pending one
    stuck: tuple[Payment, ...]  # including those of a gateway that is no longer set; the oldest
    stuck_in_all: int
    topups: tuple[TopUp, ...]  # the same of top-ups
    topups_in_all: int
    refunds: tuple[Refund, ...]  # and of refunds
    refunds_in_all: int


def read_pending_collections(*, now: datetime) -> PendingCollections:
    """Count pending transactions and fetch the stuck ones, with their tenants.

    Three queries if there are few.
    """
    gateway = payments.gateway()
    rows = Payment.objects.filter(status__in=(PaymentStatus.PENDING, PaymentStatus.STUCK))
    gone = ~Q(gateway=gateway.name if gateway else "")
    person = Q(status=PaymentStatus.STUCK) | Q(status=PaymentStatus.PENDING, attempts__gt=0) & gone
    found = rows.aggregate(
        pending=Count("pk", filter=~person),
        failing=Count("pk", filter=~person & Q(consecutive_failures__gt=0)),
        first=Min("opened_at", filter=~person),
        stuck=Count("pk", filter=person),
    )
    stuck = (
        rows.filter(person)
        .select_related("invoice", "tenant")
        .order_by(Coalesce("stuck_at", "opened_at"), "pk")[:MAX_SHOWN]
    )
    topups = TopUp.objects.filter(person).select_related("tenant").order_by("opened_at", "pk")
    refunds = Refund.objects.filter(person).select_related("tenant", "payment__invoice")
    return PendingCollections(
        found["pending"],
        found["failing"],
        now - found["first"] if found["first"] else None,
        tuple(stuck) if found["stuck"] else (),
        found["stuck"],
        *first_rows(topups),
        *first_rows(refunds.order_by("opened_at", "pk")),
    )


def first_rows(rows: QuerySet[Row]) -> tuple[tuple[Row, ...], int]:
    """Return the first rows and the total number; counts only if there are more."""
    found = tuple(rows[: MAX_SHOWN + 1])
    return found[:MAX_SHOWN], len(found) if len(found) <= MAX_SHOWN else rows.count()
