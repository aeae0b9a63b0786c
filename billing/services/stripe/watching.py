"""How collecting through Stripe goes, for operators: what waits for a person, and where books differ. As staff."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max

from billing.models import EventState, StripeDay, StripeDifference, StripeEvent

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

    @property
    def troubles(self) -> int:
        """How many things wait for a person."""
        return self.differences_in_all + self.parked_in_all


def look() -> Watch:
    """Fetch what waits, the oldest first, and the latest days; six queries."""
    differences = StripeDifference.objects.order_by("found_at", "pk")
    parked = StripeEvent.objects.filter(state=EventState.PARKED).order_by("received_at", "pk")
    return Watch(
        tuple(differences[:SHOWN]),
        differences.count(),
        tuple(parked[:SHOWN]),
        parked.count(),
        tuple(StripeDay.objects.order_by("-day")[:SHOWN]),
        StripeDay.objects.aggregate(at=Max("checked_at"))["at"],
    )


def waits() -> int:
    """Count what waits for a person; two queries."""
    return StripeDifference.objects.count() + StripeEvent.objects.filter(state=EventState.PARKED).count()
