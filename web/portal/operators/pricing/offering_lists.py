"""Lists of offerings, price versions and usage without a price: their filters and CSV columns."""

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy

from billing.domain.documents import NANO_DIGITS
from billing.domain.money import format_fixed_point
from billing.models import PriceVersion
from billing.services.catalogue.price_list import OfferingPrice
from billing.services.rating.unpriced_usage import UnpricedInterval
from broker.models import Offering, OfferingState
from web.portal.operators.list_specs import ListState, OperatorList
from web.portal.operators.operator_lists import csv_time


@dataclass(frozen=True, slots=True)
class OfferingRow:
    """An offering with its prices and its live leases."""

    offering: Offering
    price: OfferingPrice | None
    next: Any
    live: int

    @property
    def price_class(self) -> str:
        return price_class_text(self.offering)


def price_class_text(offering: Offering) -> str:
    return offering.price_class.replace("_", "-")


def csv_price(nano_per_hour: int) -> str:
    """Write a price per hour as a plain decimal."""
    return format_fixed_point(nano_per_hour, NANO_DIGITS)


def _offering_cells(each: OfferingRow) -> tuple[object, ...]:
    row, price, upcoming = each.offering, each.price, each.next
    return (
        *(row.pk, row.label, row.gpu_model_id or "", row.profile, row.isolation, row.price_class, row.region),
        *(row.state, row.memory_gb, row.milli_units, each.live, csv_price(price.nano_per_hour) if price else ""),
        *(csv_price(upcoming.nano_per_hour) if upcoming else "", csv_time(upcoming.since) if upcoming else ""),
        csv_time(row.created_at),
    )


def _gap_cells(each: UnpricedInterval) -> tuple[object, ...]:
    return (
        *(each.tenant, each.tenant_name, each.lease, each.offering, each.label, csv_time(each.since)),
        *(csv_time(each.until), each.unit_seconds, each.currency),
    )


def _version_cells(each: PriceVersion) -> tuple[object, ...]:
    return (
        *(each.pk, each.offering_id, each.tenant_id or "", each.currency, csv_price(each.nano_per_hour), each.model),
        *(csv_time(each.valid.lower), csv_time(each.valid.upper), each.created_by, csv_time(each.created_at)),
    )


VERSION_HEADS = "price_version offering tenant currency price_per_hour model since until set_by set_at"
OFFERING_LIST = OperatorList(
    name="offerings",
    heads=(
        "offering label gpu_model profile isolation price_class region state memory_gb milli_units live_leases "
        "price_per_hour next_price_per_hour next_price_since created_at"
    ),
    cells=_offering_cells,
    at="offering__created_at",
    states=(
        ListState("", gettext_lazy("All")),
        *(
            ListState(each.value, each.label, test=lambda row, state=each: row.offering.state == state)  # type: ignore[misc]
            for each in OfferingState
        ),
    ),
    search=("offering__label", "offering__gpu_model_id", "offering__region", "offering__profile", "offering__pk"),
)
GAP_LIST = OperatorList(
    name="unpriced-usage",
    heads="tenant tenant_name lease offering offering_name since until unit_seconds currency",
    cells=_gap_cells,
    tenant="tenant",
    tenant_name="tenant_name",
    at="since",
    search=("lease", "label", "offering"),
)
VERSION_LIST = OperatorList(
    name="price-versions",
    heads=VERSION_HEADS,
    cells=_version_cells,
    at="created_at",
    search=("created_by",),
)
TENANT_PRICE_LIST = OperatorList(
    name="tenant-prices",
    heads=VERSION_HEADS,
    cells=_version_cells,
    tenant="tenant_id",
    at="created_at",
    search=("created_by",),
)
