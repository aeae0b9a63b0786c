"""What is sold, with today's price and how many are free: the rows of the catalogue and of the launch page."""

from collections.abc import Iterable
from dataclasses import dataclass

from billing.domain.money import fixed_point, half_up
from billing.portal.pages import PageRequest
from billing.services import prices
from billing.services.prices import Price
from broker.domain.states import PriceClass
from broker.models import Offering
from broker.services.catalogue import profile_of, short_name, spec_of
from broker.services.leases import openings

SPOT, ON_DEMAND = PriceClass.SPOT.value, PriceClass.ON_DEMAND.value
Shape = tuple[str, str, str, str]


@dataclass(frozen=True)
class Sold:
    """One offering as it is sold now."""

    offering: Offering
    price: Price | None
    free: int

    @property
    def nano_per_hour(self) -> int | None:
        return self.price.nano_per_hour if self.price else None

    @property
    def terms(self) -> str:
        return self.offering.price_class.replace("_", "-")

    @property
    def shape(self) -> Shape:
        o = self.offering
        return o.model, o.profile, o.isolation, o.region


@dataclass(frozen=True)
class Item:
    """One shape in one region, on every term it is sold on."""

    terms: dict[str, Sold]  # by price class
    grid: int
    start: int
    size: int
    left: int | None = None  # how many of it the quota of units still allows

    @property
    def tag(self) -> str:
        return f"{spec_of(self.offering.model).memory_gb} GB a card, {self.grid} memory slices"

    @property
    def first(self) -> Sold:
        """The terms that stand for the shape: on demand where it is sold so."""
        return self.terms.get(ON_DEMAND) or next(iter(self.terms.values()))

    @property
    def offering(self) -> Offering:
        return self.first.offering

    @property
    def spot(self) -> Sold | None:
        return self.terms.get(SPOT)

    @property
    def free(self) -> int:
        return self.first.free

    @property
    def model(self) -> str:
        return short_name(self.offering.model)

    @property
    def name(self) -> str:
        return "Whole card" if self.offering.isolation == "device" else self.offering.profile

    @property
    def nano_per_hour(self) -> int | None:
        return self.first.nano_per_hour

    @property
    def nano_per_gb(self) -> int | None:
        """What a gigabyte of its memory costs per hour."""
        nano = self.first.nano_per_hour
        return None if nano is None else nano // self.offering.memory_gb

    @property
    def per_gb(self) -> str:
        """The same with four decimals: whole cents would hide the difference."""
        nano = self.nano_per_gb
        return "" if nano is None else fixed_point(half_up(nano, 10**5), 4)

    @property
    def spot_saves(self) -> int:
        """How many percent spot is below on demand."""
        spot, full = self.spot, self.terms.get(ON_DEMAND)
        if not (spot and full and spot.nano_per_hour and full.nano_per_hour):
            return 0
        return 100 - spot.nano_per_hour * 100 // full.nano_per_hour


def sold(request: PageRequest) -> list[Sold]:
    """Return every published offering; five queries however many there are."""
    offerings = list(Offering.objects.published())
    price = prices.at(request.now, currency=request.tenant.currency, tenant=request.tenant.pk)
    free = openings.count(offerings, now=request.now)
    return [Sold(o, price.get(o.pk), free[o.pk]) for o in offerings]


def items(all_sold: Iterable[Sold]) -> list[Item]:
    """Group offerings by shape: dear models first, large slices before small ones."""
    by_shape: dict[Shape, dict[str, Sold]] = {}
    for each in all_sold:
        by_shape.setdefault(each.shape, {})[each.offering.price_class] = each
    found = [item(terms) for terms in by_shape.values()]
    dearest: dict[str, int] = {}
    for shape in found:
        dearest[shape.model] = max(dearest.get(shape.model, 0), shape.nano_per_hour or 0)
    return sorted(
        found,
        key=lambda i: (
            -spec_of(i.offering.model).memory_gb,
            -dearest[i.model],
            i.offering.region,
            -i.size,
            i.offering.isolation != "device",
            -i.offering.milli_units,
        ),
    )


def item(terms: dict[str, Sold]) -> Item:
    offering = next(iter(terms.values())).offering
    profile = profile_of(offering)
    # Drawn where its last legal place begins: the glyph tells slices of one size apart.
    place = profile.placements[-1]
    return Item(terms, grid=spec_of(offering.model).grid, start=place.start, size=place.size)
