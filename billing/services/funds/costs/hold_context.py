"""Hold context of a lease: its hold, its usage, and its maximum cost.

The hold is opened when the lease is first checked.
"""

from dataclasses import dataclass
from datetime import datetime

from billing.models.default_ids import hold_id
from billing.services.funds.costs.max_costs import NO_USAGE, LeaseUsage, MaxCost, lease_usages
from broker.models import Lease
from ports.postgres import sql_statements
from ports.postgres.sql_statements import load_sql


@dataclass(frozen=True, slots=True)
class LeaseHold:
    """Hold of a lease: tenant, end of its wallet cover, and whether it is new.

    `covers_until` is None if the tenant is not prepaid, or past use is being reserved.
    """

    id: str
    tenant_id: str
    covers_until: datetime | None
    created: bool


@dataclass(frozen=True, slots=True)
class HoldContext:
    """A lease with its hold, usage so far and maximum cost, loaded once per transaction."""

    lease: Lease
    hold: LeaseHold
    usage: LeaseUsage
    max_cost: MaxCost


def lease_usage(lease: Lease) -> LeaseUsage:
    """Return a lease's usage; no query for an unsaved lease."""
    return NO_USAGE if lease._state.adding else lease_usages([lease.pk]).get(lease.pk, NO_USAGE)


def open_lease_hold(lease: Lease, usage: LeaseUsage | None = None, *, now: datetime) -> HoldContext:
    """Open or reopen a lease's hold, and return it with usage and maximum cost."""
    tenant = lease.project.tenant
    values = {
        "tenant": tenant.pk,
        "id": hold_id(),
        "lease": lease.pk,
        "currency": tenant.currency,
        "now": now,
        "seq": lease.seq,
    }
    ((key, covers_until, created),) = sql_statements.fetch_rows(load_sql("billing/funds/open_hold"), values)
    hold = LeaseHold(key, tenant.pk, covers_until, created)
    return HoldContext(lease, hold, lease_usage(lease) if usage is None else usage, MaxCost(tenant, [lease]))
