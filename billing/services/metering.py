"""What happens every half minute: whatever ended is charged, the drafts show it, and holds give back what it spared."""

from datetime import datetime

from billing.services import drafts, rating
from billing.services.funds import settling
from billing.services.rating import Outcome
from billing.services.storage import charging


def meter(*, now: datetime) -> Outcome:
    """Charge the news of every tenant, and bring their drafts and holds up to it."""
    outcome = rating.rate(now=now) + charging.rate(now=now)
    drafts.refresh_all(outcome.tenants, now=now)
    settling.look_again(now=now)
    return outcome
