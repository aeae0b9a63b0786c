"""Metering run, every half minute: charge what ended, refresh drafts, adjust holds."""

from datetime import datetime

from billing.services.funds.holds import hold_settlement
from billing.services.invoicing import drafts
from billing.services.rating import lease_rating, storage_rating
from billing.services.rating.lease_rating import RatingOutcome


def run_metering(*, now: datetime) -> RatingOutcome:
    """Charge every tenant's new usage, then refresh their drafts and holds."""
    outcome = lease_rating.rate_all_leases(now=now) + storage_rating.rate_volumes(now=now)
    drafts.refresh_all_drafts(outcome.tenants, now=now)
    hold_settlement.settle_holds(now=now)
    return outcome
