"""Letters that reached nobody in the whole installation, and wait for a person. As staff."""

from dataclasses import dataclass

from billing.models import Letter
from billing.models.letters import FOR_PEOPLE
from billing.services.payments.waiting import oldest


@dataclass(frozen=True, slots=True)
class Post:
    unsent: tuple[Letter, ...]  # the oldest, with their tenant
    unsent_in_all: int


def look() -> Post:
    """Fetch what reached nobody; one query where that is little."""
    rows = Letter.objects.filter(unsent__in=FOR_PEOPLE).select_related("tenant")
    return Post(*oldest(rows.order_by("made_at", "pk")))
