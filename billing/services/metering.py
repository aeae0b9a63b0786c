"""What happens every half minute: whatever ended is charged, and the drafts show it."""

from datetime import datetime

from billing.services import drafts, rating
from billing.services.rating import Outcome


def meter(*, now: datetime) -> Outcome:
    """Charge the news of every tenant and bring their drafts up to it."""
    outcome = rating.rate(now=now)
    drafts.refresh_all(outcome.tenants, now=now)
    return outcome
