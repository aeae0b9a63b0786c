"""Status of collecting through Stripe for operators: open problems and differences; read as staff."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max, QuerySet

from billing.models import StripeDifference, StripeEvent, StripeEventState, StripeReconciliationDay
from billing.services.payments.stripe import reconciliation_schedule


@dataclass(frozen=True, slots=True)
class StripeStatus:
    """How many items are open, and when days were reconciled."""

    differences: int
    parked: int
    checked_at: datetime | None
    late: int  # overdue days


def get_stripe_status(*, now: datetime) -> StripeStatus:
    """Count the open items and overdue days."""
    return StripeStatus(
        open_differences().count(),
        parked_events().count(),
        StripeReconciliationDay.objects.aggregate(at=Max("checked_at"))["at"],
        reconciliation_schedule.count_late_days(now=now),
    )


def count_open_items(*, now: datetime) -> int:
    """Count the items that wait for a person; three queries."""
    late = reconciliation_schedule.count_late_days(now=now)
    return open_differences().count() + parked_events().count() + late


def open_differences() -> QuerySet[StripeDifference]:
    """Return the differences that nobody has acknowledged, oldest first."""
    rows = StripeDifference.objects.filter(acknowledged_at=None).select_related("day")
    return rows.order_by("found_at", "pk")


def parked_events() -> QuerySet[StripeEvent]:
    """Return the events that could not be processed, oldest first."""
    return StripeEvent.objects.filter(state=StripeEventState.PARKED).order_by("received_at", "pk")


def reconciled_days() -> QuerySet[StripeReconciliationDay]:
    """Return the days, latest first."""
    return StripeReconciliationDay.objects.order_by("-day")
