"""Alternatives to a requested offering: cheaper, faster or spot, and free now."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from billing.services.catalogue import price_list
from billing.services.catalogue.price_list import OfferingPrice
from billing.services.funds.costs import lease_maximums
from broker.domain.lifecycle.states import PriceClass
from broker.models import Lease, Offering
from broker.services.queue import open_capacity
from broker.services.volumes import volume_mounts


@dataclass(frozen=True, slots=True)
class OfferingAlternative:
    """Another offering for the same quantity and duration; `difference_minor` is negative when it is cheaper."""

    kind: str  # spot, cheaper or faster
    offering: Offering
    price: OfferingPrice
    free: int
    at_most_minor: int
    difference_minor: int


def find_alternatives(lease: Lease, *, currency: str, cost: int, now: datetime) -> tuple[OfferingAlternative, ...]:
    """Return at most one alternative of each kind that could start now.

    All are of the lease's region, and in the cluster where its volume is; with a GPU if it has one, else without.
    """
    wanted = lease.offering
    in_region = Offering.objects.published().filter(region=wanted.region).order_by("pk")
    others = [o for o in in_region if o != wanted and o.is_cpu_only == wanted.is_cpu_only]
    known = price_list.prices_at(
        now, currency=currency, offerings=[o.pk for o in (*others, wanted)], tenant=lease.tenant_id
    )
    home = volume_mounts.cluster_name_of(lease.volume_id)
    free = open_capacity.count_open_capacity((o for o in others if o.pk in known), now=now, cluster=home)
    buyable = [o for o in others if free.get(o.pk, 0) >= lease.quantity]

    def price(offering: Offering) -> int:
        return known[offering.pk].nano_per_hour

    own = price(wanted)
    spot = [o for o in buyable if _same_shape(o, wanted) and o.price_class == PriceClass.SPOT and price(o) < own]
    on_terms = [o for o in buyable if o.price_class == wanted.price_class]
    cheaper = [o for o in on_terms if price(o) < own]
    faster = [o for o in on_terms if _compute(o) > _compute(wanted) and o.memory_gb >= wanted.memory_gb]
    found = (
        # "cheaper" gives up the least memory, or CPUs where there is no GPU; "faster" is the cheapest upgrade.
        ("spot", _min_or_none(spot, price)),
        ("cheaper", _min_or_none(cheaper, lambda o: (-o.memory_gb, -o.is_cpu_only * o.cpu_milli, price(o)))),
        ("faster", _min_or_none(faster, lambda o: (price(o), _compute(o)))),
    )
    return tuple(
        _alternative(kind, offering, known[offering.pk], free[offering.pk], lease, cost, now)
        for kind, offering in found
        if offering
    )


def _min_or_none(offerings: Iterable[Offering], key: Callable[[Offering], object]) -> Offering | None:
    return min(offerings, key=key, default=None)  # type: ignore[arg-type]  # every key above compares


def _compute(offering: Offering) -> int:
    """Return an offering's compute, for comparison with offerings of the same kind."""
    return offering.cpu_milli if offering.is_cpu_only else offering.milli_units


def _same_shape(one: Offering, other: Offering) -> bool:
    return (one.gpu_model_id, one.profile, one.isolation) == (other.gpu_model_id, other.profile, other.isolation)


def _alternative(
    kind: str, offering: Offering, price: OfferingPrice, free: int, lease: Lease, cost: int, now: datetime
) -> OfferingAlternative:
    most = lease_maximums.request_maximum(lease, nano_per_hour=price.nano_per_hour, currency=price.currency, now=now)
    return OfferingAlternative(kind, offering, price, free, most.minor, most.minor - cost)
