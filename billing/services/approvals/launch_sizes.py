"""Size of a launch, as limits of approval measure it: cost, GPUs and total duration."""

from copy import copy
from datetime import datetime

from billing.domain.approvals import LaunchSize
from billing.domain.money import exponent_of, to_minor_up
from billing.services.funds.costs.hold_context import lease_usage
from billing.services.funds.costs.max_costs import MaxCost
from broker.models import Lease
from broker.services.inventory import gpu_catalogue

MILLI = 1000


def measure_launch(lease: Lease, *, now: datetime) -> LaunchSize:
    """Return what a lease may come to in all, with every lease of its array.

    Automatic extension counts to its limit, so that nothing grows past an approval by itself.
    """
    longest = copy(lease)
    longest.max_duration_s = max(lease.max_duration_s, lease.extend_limit_s if lease.extend_by_s else 0)
    together = lease.array.size if lease.array else 1
    tenant = lease.project.tenant
    exact = sum(MaxCost(tenant, [lease]).needed(longest, lease_usage(lease), now=now).values())
    return LaunchSize(
        cost_minor=to_minor_up(exact, exponent_of(tenant.currency)) * together,
        milli_gpus=gpu_share(lease) * together,
        duration_s=_duration(longest, now),
    )


def gpu_share(lease: Lease) -> int:
    """Return how many GPUs a lease holds, in thousandths; slices count by their part."""
    spec = gpu_catalogue.gpu_model_spec(lease.offering.model)
    if not spec.has_gpu:
        return 0
    return -(-lease.offering.milli_units * lease.quantity * MILLI // (spec.compute * MILLI))


def _duration(lease: Lease, now: datetime) -> int:
    """Return for how many seconds a lease may be active."""
    if lease.end_date is None:
        return lease.max_duration_s
    starts = lease.active_at or max(now, lease.starts_at or now)
    left = max(int((lease.end_date - starts).total_seconds()), 0)
    return min(lease.max_duration_s, lease.active_seconds + left)
