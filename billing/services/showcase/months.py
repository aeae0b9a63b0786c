"""The story's money: everything charged, months that are over closed, the present one drafted."""

from datetime import datetime

from billing.services import closing, drafts, rating
from broker.services import reconcile
from tenants.models import Tenant
from tenants.services.walls import as_sweep


def close_and_draft(*, now: datetime) -> None:
    """Rate all usage up to now, close what is over, draft what is not."""
    reconcile.look_at_active(now=now)  # no month closes over a lease that nobody has seen alive since
    rating.rate(now=now)
    closing.close_due(now=now)
    with as_sweep():
        everyone = list(Tenant.objects.values_list("pk", flat=True))
    drafts.refresh_all(everyone, now=now)
