"""How collecting goes in the whole installation: what has no answer yet, and what waits for a person. As staff."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from django.db.models import Count, Min, Model, Q, QuerySet
from django.db.models.functions import Coalesce

from billing.models import Payment, PaymentStatus, Refund, TopUp
from ports import payments

SHOWN = 30
Row = TypeVar("Row", bound=Model)


@dataclass(frozen=True, slots=True)
class Waiting:
    """`failing` are those of the pending whose last attempt failed as nobody foresaw."""

    pending: int
    failing: int
    oldest: timedelta | None  # since the first of the pending was opened
    stuck: tuple[Payment, ...]  # and what was begun through a gateway that is not set any longer; the oldest
    stuck_in_all: int
    topups: tuple[TopUp, ...]  # the same of top-ups
    topups_in_all: int
    refunds: tuple[Refund, ...]  # and of refunds
    refunds_in_all: int


def look(*, now: datetime) -> Waiting:
    """Count what is under way and fetch what waits for a person, with its tenant; three queries where little does."""
    gateway = payments.gateway()
    rows = Payment.objects.filter(status__in=(PaymentStatus.PENDING, PaymentStatus.STUCK))
    gone = ~Q(gateway=gateway.name if gateway else "")
    person = Q(status=PaymentStatus.STUCK) | Q(status=PaymentStatus.PENDING, tries__gt=0) & gone
    found = rows.aggregate(
        pending=Count("pk", filter=~person),
        failing=Count("pk", filter=~person & Q(fell__gt=0)),
        first=Min("opened_at", filter=~person),
        stuck=Count("pk", filter=person),
    )
    stuck = (
        rows.filter(person)
        .select_related("invoice", "tenant")
        .order_by(Coalesce("stuck_at", "opened_at"), "pk")[:SHOWN]
    )
    topups = TopUp.objects.filter(person).select_related("tenant").order_by("opened_at", "pk")
    refunds = Refund.objects.filter(person).select_related("tenant", "payment__invoice")
    return Waiting(
        found["pending"],
        found["failing"],
        now - found["first"] if found["first"] else None,
        tuple(stuck) if found["stuck"] else (),
        found["stuck"],
        *oldest(topups),
        *oldest(refunds.order_by("opened_at", "pk")),
    )


def oldest(rows: QuerySet[Row]) -> tuple[tuple[Row, ...], int]:
    """Return the first of some rows and how many there are; they are counted only where that is not all."""
    found = tuple(rows[: SHOWN + 1])
    return found[:SHOWN], len(found) if len(found) <= SHOWN else rows.count()
