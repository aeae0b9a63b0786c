"""Cost context of a lease: its hold, its usage, and its possible cost.

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

    `covers_until` is None if that was not asked.
    """

    id: str
    tenant_id: str
    covers_until: datetime | None
    new: bool


@dataclass(frozen=True, slots=True)
class LeaseCostContext:
    """What one transaction knows of a lease: hold, usage and possible cost."""

    lease: Lease
    hold: LeaseHold
    use: LeaseUsage
    max_cost: MaxCost


def lease_usage(lease: Lease) -> LeaseUsage:
    """Return a lease's usage; no query for an unsaved lease."""
    return NO_USAGE if lease._state.adding else lease_usages([lease.pk]).get(lease.pk, NO_USAGE)


def open_cost_context(lease: Lease, use: LeaseUsage | None = None, *, now: datetime) -> LeaseCostContext:
    """Open or reopen a lease's hold, and return its cost context."""
    tenant = lease.project.tenant
    values = {
        "tenant": tenant.pk,
        "id": hold_id(),
        "lease": lease.pk,
        "currency": tenant.currency,
        "now": now,
        "seq": lease.seq,
    }
    ((key, covers_until, new),) = sql_statements.fetch_rows(load_sql("billing/funds/open_hold"), values)
    hold = LeaseHold(key, tenant.pk, covers_until, new)
    return LeaseCostContext(lease, hold, lease_usage(lease) if use is None else use, MaxCost(tenant, [lease]))
