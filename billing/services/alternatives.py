"""What else would do: cheaper or faster, free now, with what it would cost more or less."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from billing.domain.pricing import at_most
from billing.services import prices
from billing.services.prices import Price
from broker.domain.states import PriceClass
from broker.models import Lease, Offering
from broker.services.leases import openings
from broker.services.volumes import mounting


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another offering for the same quantity and duration; `difference_minor` is negative when it is cheaper."""

    kind: str  # spot, cheaper or faster
    offering: Offering
    price: Price
    free: int
    at_most_minor: int
    difference_minor: int


def instead(lease: Lease, *, currency: str, cost: int, now: datetime) -> tuple[Alternative, ...]:
    """Offer at most one of each kind, of the lease's region and only if it could start now: where its volume lies."""
    asked = lease.offering
    others = [
        o for o in Offering.objects.published().filter(region=asked.region).order_by("pk") if o != asked
    ]
    known = prices.at(
        now, currency=currency, offerings=[o.pk for o in (*others, asked)], tenant=lease.tenant_id
    )
    home = mounting.home_of(lease.volume_id)
    free = openings.count((o for o in others if o.pk in known), now=now, cluster=home)
    buyable = [o for o in others if free.get(o.pk, 0) >= lease.quantity]

    def price(offering: Offering) -> int:
        return known[offering.pk].nano_per_hour

    own = price(asked)
    spot = [
        o for o in buyable if _same_shape(o, asked) and o.price_class == PriceClass.SPOT and price(o) < own
    ]
    on_terms = [o for o in buyable if o.price_class == asked.price_class]
    cheaper = [o for o in on_terms if price(o) < own]
    faster = [o for o in on_terms if o.milli_units > asked.milli_units and o.memory_gb >= asked.memory_gb]
    found = (
        # The one that gives up least memory for its saving, and the smallest step up.
        ("spot", _first(spot, price)),
        ("cheaper", _first(cheaper, lambda o: (-o.memory_gb, price(o)))),
        ("faster", _first(faster, lambda o: (price(o), o.milli_units))),
    )
    return tuple(
        _alternative(kind, offering, known[offering.pk], free[offering.pk], lease, currency, cost)
        for kind, offering in found
        if offering
    )


def _first(offerings: Iterable[Offering], key: Callable[[Offering], object]) -> Offering | None:
    return min(offerings, key=key, default=None)  # type: ignore[arg-type]  # every key above compares


def _same_shape(one: Offering, other: Offering) -> bool:
    return (one.gpu_model_id, one.profile, one.isolation) == (
        other.gpu_model_id,
        other.profile,
        other.isolation,
    )


def _alternative(
    kind: str, offering: Offering, price: Price, free: int, lease: Lease, currency: str, cost: int
) -> Alternative:
    minor = at_most(
        lease.max_duration_s,
        quantity=lease.quantity,
        nano_per_hour=price.nano_per_hour,
        currency=currency,
    )
    return Alternative(kind, offering, price, free, minor, minor - cost)
