"""Suggestions of what could start now instead of a queued lease."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _

from broker.domain.geometry.host_resources import HostResources
from broker.models import Offering
from web.portal.leases.lease_table import LeaseRow
from web.portal.offerings import offering_list
from web.portal.offerings.offering_list import PricedOffering
from web.portal.page_context import PageRequest
from web.ui.formatting import format_gpu_memory, format_resources

MAX_SUGGESTIONS = 2


@dataclass(frozen=True)
class StartNowSuggestion:
    """An offering with room for the whole request now."""

    icon: str
    title: str
    detail: str
    url: str
    nano_per_hour: int


def start_now_suggestions(request: PageRequest, waiting: Sequence[LeaseRow]) -> list[list[StartNowSuggestion]]:
    """Return up to two suggestions per queued row; no query when nothing waits."""
    if not waiting:
        return []
    sold = [each for each in offering_list.priced_offerings(request) if each.nano_per_hour is not None]
    return [
        [] if row.scheduled else [_suggestion(row, each) for each in nearest_offerings(row, sold)] for row in waiting
    ]


def nearest_offerings(row: LeaseRow, sold: Sequence[PricedOffering]) -> list[PricedOffering]:
    """Return the cheapest free offering with enough memory and the largest with less.

    Without a GPU it is the number of CPUs that counts.
    """
    requested, count = row.lease.offering, row.lease.quantity
    alike = [each for each in sold if each.offering.is_cpu_only == requested.is_cpu_only]
    free = [each for each in alike if each.free >= count and each.offering.pk != requested.pk]
    enough = [each for each in free if _size(each.offering) >= _size(requested)]
    smaller = [each for each in free if _size(each.offering) < _size(requested)]
    terms = requested.price_class
    enough.sort(key=lambda each: (each.offering.price_class != terms, each.nano_per_hour, each.offering.pk))
    smaller.sort(key=lambda each: (each.offering.price_class != terms, -_size(each.offering), each.nano_per_hour))
    return [*enough[:1], *smaller[: MAX_SUGGESTIONS - len(enough[:1])]]


def _size(offering: Offering) -> int:
    """Return what leases are compared by: GPU memory, or CPUs where there is no GPU."""
    return offering.cpu_milli if offering.is_cpu_only else offering.memory_gb


def _suggestion(row: LeaseRow, each: PricedOffering) -> StartNowSuggestion:
    lease, offering = row.lease, each.offering
    parameters = {"again": lease.pk, "offering": offering.pk, "class": offering.price_class}
    many = f"{lease.quantity} × " if lease.quantity > 1 else ""
    enough = _size(offering) >= _size(lease.offering)
    return StartNowSuggestion(
        icon="bolt" if enough else "arrow-down-right",
        title=_("Start now on {many}{offering_label}").format(many=many, offering_label=offering.label)
        + (_(" as spot") if each.price_class == "spot" else ""),
        detail=_("{memory} each, {free} free in {region}").format(
            memory=format_resources(HostResources(memory_mib=offering.host_memory_mib))
            if offering.is_cpu_only
            else format_gpu_memory(offering.memory_gb),
            free=each.free,
            region=offering.region,
        ),
        url=f"{reverse('launch')}?{urlencode(parameters)}",
        nano_per_hour=(each.nano_per_hour or 0) * lease.quantity,
    )
