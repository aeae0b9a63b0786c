"""Catalogue page: the offerings on sale, how many are free, and their price per gigabyte."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from billing.domain.money import SYMBOLS, format_fixed_point
from billing.services.quotes.quota_room import count_within_quotas
from broker.models import OfferingState
from tenants.models import QuotaKind
from web.http import downloads
from web.http.query_strings import chosen_value, filter_chip, page_url
from web.portal import api_examples
from web.portal.actions import API_PAGE_SIZE
from web.portal.layout import usage_meters
from web.portal.offerings import offering_list
from web.portal.offerings.offering_list import OfferingListItem
from web.portal.page_context import PageRequest, may_in_project, tenant_page

MEMORY_CHOICES = [
    ("16", gettext_noop("at least 16 GB")),
    ("32", gettext_noop("at least 32 GB")),
    ("64", gettext_noop("at least 64 GB")),
    ("128", gettext_noop("at least 128 GB")),
]
AVAILABILITY_CHOICES = [("now", gettext_noop("free now"))]
CSV_HEADERS = ["offering", "label", "gpu_model", "profile", "isolation", "price_class", "region", "memory_gb",
         "free_now", "price_per_hour", "currency", "cpu_milli", "host_memory_mib", "scratch_mib"]  # fmt: skip
UNKNOWN_PRICE_SORT_KEY = 10**18
SORT_KEYS: dict[str, Callable[[OfferingListItem], int]] = {
    "price": lambda item: item.nano_per_hour if item.nano_per_hour is not None else UNKNOWN_PRICE_SORT_KEY,
    "gb": lambda item: item.nano_per_gb if item.nano_per_gb is not None else UNKNOWN_PRICE_SORT_KEY,
    "memory": lambda item: -item.offering.memory_gb,
    "free": lambda item: -item.free,
}


@tenant_page("offerings.read")
def show_catalogue(request: PageRequest) -> HttpResponse:
    page = build_catalogue_page(request)
    if request.GET.get("format") == "csv":
        return downloads.csv_response("catalogue", CSV_HEADERS, csv_rows(request, page.listed))
    return render(request, "offerings/catalogue.html", {"page": page})


@dataclass(frozen=True, slots=True)
class CataloguePage:
    """The offerings on sale that match the filters, in the chosen order."""

    all_items: list[OfferingListItem]
    listed: list[OfferingListItem]
    sort: str
    filters: list[dict[str, Any]]
    sort_links: dict[str, dict[str, Any]]
    units: usage_meters.QuotaBar | None
    currency: str
    csv: str
    may_write: bool
    api_example: str

    @property
    def groups(self) -> list[tuple[str, list[OfferingListItem]]]:
        return group_by_model(self.listed, grouped=not self.sort)

    @property
    def free_somewhere(self) -> int:
        return sum(1 for item in self.all_items if item.free)

    @property
    def per_gb_label(self) -> str:
        return f"{SYMBOLS.get(self.currency, self.currency)}/GB·h"


def build_catalogue_page(request: PageRequest) -> CataloguePage:
    """Read the offerings on sale and how many of each the quota still allows."""
    all_items = offering_list.offering_list_items(offering_list.priced_offerings(request))
    listed = [item for item in all_items if matches_filters(request, item)]
    sort = chosen_value(request, "sort", SORT_KEYS)
    if sort:
        listed.sort(key=SORT_KEYS[sort])
    bars = usage_meters.quota_bars(request.project, now=request.now, currency=request.tenant.currency)
    units = next((bar for bar in bars if bar.kind == QuotaKind.UNITS), None)
    free = {bar.kind: max(bar.limit - bar.used, 0) for bar in bars}
    return CataloguePage(
        all_items=all_items,
        listed=[
            replace(item, quota_headroom=count_within_quotas(free, item.offering, item.nano_per_hour))
            for item in listed
        ],
        sort=sort,
        filters=catalogue_filters(request, all_items),
        sort_links={
            name: {"url": page_url(request, sort=None if name == sort else name), "on": name == sort}
            for name in SORT_KEYS
        },
        units=units,
        currency=request.tenant.currency,
        csv=page_url(request, format="csv"),
        may_write=may_in_project(request, "leases.write"),
        api_example=offerings_call(request),
    )


def offerings_call(request: PageRequest) -> str:
    """Return the API call that lists the same offerings, one row per price class."""
    parameters = {
        "state": OfferingState.PUBLISHED.value,
        "gpu_model": request.GET.get("model", ""),
        "isolation": request.GET.get("isolation", ""),
        "region": request.GET.get("region", ""),
        "memory_gb__gte": chosen_value(request, "memory", dict(MEMORY_CHOICES)),
        "free_now": "true" if request.GET.get("free") == "now" else "",
        "limit": API_PAGE_SIZE,
    }
    return api_examples.curl_get(
        "/offerings?" + urlencode({name: value for name, value in parameters.items() if value})
    )


def catalogue_filters(request: PageRequest, all_items: list[OfferingListItem]) -> list[dict[str, Any]]:
    """Return the filter chips; their choices come from the offerings on sale."""
    models = sorted({(i.offering.model, i.model) for i in all_items})
    isolations = sorted({(i.offering.isolation, i.offering.isolation) for i in all_items if not i.is_cpu_only})
    regions = sorted({(i.offering.region, i.offering.region) for i in all_items})
    memory = [(value, _(label)) for value, label in MEMORY_CHOICES]
    free = [(value, _(label)) for value, label in AVAILABILITY_CHOICES]
    known = [
        ("model", _("Model"), models),
        ("memory", _("Memory"), memory),
        ("isolation", _("Isolation"), isolations),
        ("region", _("Region"), regions),
        ("free", _("Availability"), free),
    ]
    return [filter_chip(request, name, label, choices) for name, label, choices in known]


def matches_filters(request: PageRequest, item: OfferingListItem) -> bool:
    """Return whether an item passes every filter in the query string."""
    query, offering = request.GET, item.offering
    least = chosen_value(request, "memory", dict(MEMORY_CHOICES), "0")
    return (
        query.get("model", "") in ("", offering.gpu_model_id)
        and query.get("isolation", "") in ("", item.isolation)
        and query.get("region", "") in ("", offering.region)
        and offering.memory_gb >= int(least)
        and (query.get("free") != "now" or item.free > 0)
    )


def group_by_model(listed: list[OfferingListItem], *, grouped: bool) -> list[tuple[str, list[OfferingListItem]]]:
    """Return the items grouped by model, or as one list when another order is chosen."""
    if not grouped:
        return [(_("All models"), listed)] if listed else []
    found: dict[str, list[OfferingListItem]] = {}
    for item in listed:
        found.setdefault(item.model, []).append(item)
    return list(found.items())


def csv_rows(request: PageRequest, listed: list[OfferingListItem]) -> list[list[object]]:
    return [
        [s.offering.pk, s.offering.label, s.offering.gpu_model_id, s.offering.profile, s.offering.isolation,
         s.offering.price_class, s.offering.region, s.offering.memory_gb, s.free,
         "" if s.nano_per_hour is None else format_fixed_point(s.nano_per_hour, 9), request.tenant.currency,
         s.offering.cpu_milli, s.offering.host_memory_mib, s.offering.scratch_mib]
        for item in listed for s in item.by_price_class.values()
    ]  # fmt: skip
