"""Status of collecting through Stripe for operators: open problems and differences; read as staff."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max, QuerySet

from billing.models import StripeDifference, StripeEvent, StripeEventState, StripeReconciliationDay
from billing.services.payments.stripe import reconciliation_schedule

MAX_SHOWN = 50


@dataclass(frozen=True, slots=True)
class StripeStatus:
    """Open items, at most fifty of each kind, with their total numbers."""

    differences: tuple[StripeDifference, ...]
    differences_in_all: int
    parked: tuple[StripeEvent, ...]
    parked_in_all: int
    days: tuple[StripeReconciliationDay, ...]
    checked_at: datetime | None
    late: int  # overdue days


def get_stripe_status(*, now: datetime) -> StripeStatus:
    """Return the open items, oldest first, and the latest days; seven queries."""
    differences = _open_differences().select_related("day").order_by("found_at", "pk")
    parked = StripeEvent.objects.filter(state=StripeEventState.PARKED).order_by("received_at", "pk")
    return StripeStatus(
        tuple(differences[:MAX_SHOWN]),
        differences.count(),
        tuple(parked[:MAX_SHOWN]),
        parked.count(),
        tuple(StripeReconciliationDay.objects.order_by("-day")[:MAX_SHOWN]),
        StripeReconciliationDay.objects.aggregate(at=Max("checked_at"))["at"],
        reconciliation_schedule.count_late_days(now=now),
    )


def count_open_items(*, now: datetime) -> int:
    """Count the items that wait for a person; three queries."""
    parked = StripeEvent.objects.filter(state=StripeEventState.PARKED)
    return _open_differences().count() + parked.count() + reconciliation_schedule.count_late_days(now=now)


def _open_differences() -> QuerySet[StripeDifference]:
    return StripeDifference.objects.filter(acknowledged_at=None)
