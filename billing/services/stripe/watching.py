"""How collecting through Stripe goes, for operators: what waits for a person, and where books differ. As staff."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max, QuerySet

from billing.models import EventState, StripeDay, StripeDifference, StripeEvent
from billing.services.stripe import planning

SHOWN = 50


@dataclass(frozen=True, slots=True)
class Watch:
    """What waits is at most fifty of each, with how many there are in all."""

    differences: tuple[StripeDifference, ...]
    differences_in_all: int
    parked: tuple[StripeEvent, ...]
    parked_in_all: int
    days: tuple[StripeDay, ...]
    checked_at: datetime | None
    late: int  # days that should have been compared by now

    @property
    def troubles(self) -> int:
        """How many things wait for a person."""
        return self.differences_in_all + self.parked_in_all + self.late


def look(*, now: datetime) -> Watch:
    """Fetch what waits, the oldest first, and the latest days; seven queries."""
    differences = _waiting().select_related("day").order_by("found_at", "pk")
    parked = StripeEvent.objects.filter(state=EventState.PARKED).order_by("received_at", "pk")
    return Watch(
        tuple(differences[:SHOWN]),
        differences.count(),
        tuple(parked[:SHOWN]),
        parked.count(),
        tuple(StripeDay.objects.order_by("-day")[:SHOWN]),
        StripeDay.objects.aggregate(at=Max("checked_at"))["at"],
        planning.late(now=now),
    )


def waits(*, now: datetime) -> int:
    """Count what waits for a person; three queries."""
    parked = StripeEvent.objects.filter(state=EventState.PARKED)
    return _waiting().count() + parked.count() + planning.late(now=now)


def _waiting() -> QuerySet[StripeDifference]:
    return StripeDifference.objects.filter(acknowledged_at=None)
