"""How many leases of an offering all quotas of a project together still allow."""

from collections.abc import Mapping

from broker.models import Offering
from broker.services.leases.lease_requests import MIN_DURATION_S
from tenants.models import QuotaKind


def count_within_quotas(free: Mapping[str, int], offering: Offering, nano_per_hour: int | None) -> int | None:
    """Return how many of an offering could start; None if no quota limits them.

    They have the shortest duration. `free` is what is left of each kind that has a quota on the project's path,
    and the price is what one costs.
    """
    needed = {
        QuotaKind.UNITS: offering.milli_units,
        QuotaKind.GPU_SECONDS: offering.milli_units * MIN_DURATION_S,
        QuotaKind.BURN: nano_per_hour or 0,
    }
    if offering.is_storage:
        needed = {QuotaKind.STORAGE: 1}
    counts = [free[kind] // amount for kind, amount in needed.items() if amount and kind in free]
    return min(counts, default=None)
