"""List of offerings with today's price and free slices, for catalogue and launch page."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils.translation import gettext as _

from billing.domain.money import format_fixed_point, half_up
from billing.services.catalogue import price_list
from billing.services.catalogue.price_list import OfferingPrice
from broker.domain.lifecycle.states import PriceClass
from broker.models import Offering
from broker.services.inventory.gpu_catalogue import gpu_model_spec, model_label, profile_of
from broker.services.queue import open_capacity
from web.portal.page_context import PageRequest
from web.ui.formatting import format_profile

SPOT, ON_DEMAND = PriceClass.SPOT.value, PriceClass.ON_DEMAND.value
Shape = tuple[str, str, str, str]


@dataclass(frozen=True)
class PricedOffering:
    """One offering with its current price and free slices."""

    offering: Offering
    price: OfferingPrice | None
    free: int

    @property
    def nano_per_hour(self) -> int | None:
        return self.price.nano_per_hour if self.price else None

    @property
    def price_class(self) -> str:
        return self.offering.price_class.replace("_", "-")

    @property
    def shape(self) -> Shape:
        o = self.offering
        return o.model, o.profile, o.isolation, o.region


@dataclass(frozen=True)
class OfferingListItem:
    """One shape in one region, in every price class it is sold in."""

    by_price_class: dict[str, PricedOffering]
    grid: int
    start: int
    size: int
    quota_headroom: int | None = None  # how many of it all quotas together still allow

    @property
    def tag(self) -> str:
        if self.is_cpu_only:
            return _("for notebooks and data preparation; takes no GPU quota")
        spec = gpu_model_spec(self.offering.model)
        if not spec.has_mig_placements:
            return _("{memory_gb} GB per GPU").format(memory_gb=spec.memory_gb)
        return _("{memory_gb} GB per GPU, {grid} memory slices").format(memory_gb=spec.memory_gb, grid=self.grid)

    @property
    def primary(self) -> PricedOffering:
        """Return the price class that stands for the shape: on-demand if sold."""
        return self.by_price_class.get(ON_DEMAND) or next(iter(self.by_price_class.values()))

    @property
    def offering(self) -> Offering:
        return self.primary.offering

    @property
    def spot(self) -> PricedOffering | None:
        return self.by_price_class.get(SPOT)

    @property
    def free(self) -> int:
        return self.primary.free

    @property
    def model(self) -> str:
        return _("CPU, no GPU") if self.is_cpu_only else model_label(self.offering.model)

    @property
    def name(self) -> str:
        return _("Whole GPU") if self.offering.isolation == "device" else format_profile(self.offering.profile)

    @property
    def is_cpu_only(self) -> bool:
        return self.offering.is_cpu_only

    @property
    def isolation(self) -> str:
        """Return how it is separated from others; CPUs are by their container."""
        return _("container") if self.is_cpu_only else self.offering.isolation

    @property
    def nano_per_hour(self) -> int | None:
        return self.primary.nano_per_hour

    @property
    def nano_per_gb(self) -> int | None:
        """Return the hourly price of a gigabyte of GPU memory, in 10⁻⁹ units."""
        nano = self.primary.nano_per_hour
        return nano // self.offering.memory_gb if nano is not None and self.offering.memory_gb else None

    @property
    def per_gb(self) -> str:
        """Return the price per gigabyte with four decimals; cents would hide the difference."""
        nano = self.nano_per_gb
        return "" if nano is None else format_fixed_point(half_up(nano, 10**5), 4)

    @property
    def spot_saves(self) -> int:
        """Return how many percent spot is cheaper than on-demand."""
        spot, full = self.spot, self.by_price_class.get(ON_DEMAND)
        if not (spot and full and spot.nano_per_hour and full.nano_per_hour):
            return 0
        return 100 - spot.nano_per_hour * 100 // full.nano_per_hour


def priced_offerings(request: PageRequest) -> list[PricedOffering]:
    """Return every published offering; five queries for any number of offerings."""
    offerings = list(Offering.objects.published())
    price = price_list.prices_at(request.now, currency=request.tenant.currency, tenant=request.tenant.pk)
    free = open_capacity.count_open_capacity(offerings, now=request.now)
    return [PricedOffering(o, price.get(o.pk), free[o.pk]) for o in offerings]


def offering_list_items(all_sold: Iterable[PricedOffering]) -> list[OfferingListItem]:
    """Group offerings by shape: expensive models first, large slices before small ones."""
    by_shape: dict[Shape, dict[str, PricedOffering]] = {}
    for each in all_sold:
        by_shape.setdefault(each.shape, {})[each.offering.price_class] = each
    found = [offering_list_item(group) for group in by_shape.values()]
    dearest: dict[str, int] = {}
    for shape in found:
        dearest[shape.model] = max(dearest.get(shape.model, 0), shape.nano_per_hour or 0)
    return sorted(
        found,
        key=lambda i: (
            -gpu_model_spec(i.offering.model).memory_gb,
            -dearest[i.model],
            i.offering.region,
            -i.size,
            i.offering.isolation != "device",
            -i.offering.milli_units,
            -i.offering.cpu_milli * i.is_cpu_only,
        ),
    )


def offering_list_item(group: dict[str, PricedOffering]) -> OfferingListItem:
    offering = next(iter(group.values())).offering
    profile = profile_of(offering)
    # Drawn at its last legal placement, so that the glyphs of equal sizes differ.
    place = profile.placements[-1]
    return OfferingListItem(group, grid=gpu_model_spec(offering.model).grid, start=place.start, size=place.size)
