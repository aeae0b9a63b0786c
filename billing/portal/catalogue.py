"""The catalogue: every slice that is sold, how many are free this second, and what a gigabyte costs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from billing.domain.money import SYMBOLS, fixed_point
from billing.portal import calls, downloads, meters, shelf
from billing.portal.addresses import chosen, menu, varied
from billing.portal.pages import PageRequest, may, page
from billing.portal.shelf import Item
from broker.models import OfferingState
from tenants.models import QuotaKind
from tenants.portal.acts import MOST

MEMORY = [
    ("16", "at least 16 GB"),
    ("32", "at least 32 GB"),
    ("64", "at least 64 GB"),
    ("128", "at least 128 GB"),
]
FREE = [("now", "free now")]
HEADS = ["offering", "label", "gpu_model", "profile", "isolation", "price_class", "region", "memory_gb",
         "free_now", "price_per_hour", "currency"]  # fmt: skip
UNKNOWN_LAST = 10**18
ORDERS: dict[str, Callable[[Item], int]] = {
    "price": lambda item: item.nano_per_hour if item.nano_per_hour is not None else UNKNOWN_LAST,
    "gb": lambda item: item.nano_per_gb if item.nano_per_gb is not None else UNKNOWN_LAST,
    "memory": lambda item: -item.offering.memory_gb,
    "free": lambda item: -item.free,
}


@require_GET
@page("offerings.read")
def catalogue(request: PageRequest) -> HttpResponse:
    everything = shelf.items(shelf.sold(request))
    filters = filters_of(request, everything)
    listed = [item for item in everything if fits(request, item)]
    sort = chosen(request, "sort", ORDERS)
    if sort:
        listed.sort(key=ORDERS[sort])
    bars = meters.quotas(request.project, now=request.now, currency=request.tenant.currency)
    units = next((bar for bar in bars if bar.kind == QuotaKind.UNITS), None)
    listed = [replace(item, left=left(item, units)) for item in listed]
    if request.GET.get("format") == "csv":
        return downloads.table("catalogue", HEADS, lines(request, listed))
    context: dict[str, Any] = {
        "groups": groups(listed, grouped=not sort),
        "total": len(everything),
        "free_somewhere": sum(1 for item in everything if item.free),
        "shown": len(listed),
        "filters": filters,
        "heads": {name: {"url": varied(request, sort=None if name == sort else name), "on": name == sort}
                  for name in ORDERS},
        "units": units,
        "currency": request.tenant.currency,
        "per_gb_label": f"{SYMBOLS.get(request.tenant.currency, request.tenant.currency)}/GB·h",
        "csv": varied(request, format="csv"),
        "may_write": may(request, "leases.write"),
        "now": request.now,
        "call": call(request),
    }  # fmt: skip
    return render(request, "billing/catalogue.html", context)


def call(request: PageRequest) -> str:
    """Write the call that gives the same offerings, each price class by itself."""
    asked = {
        "state": OfferingState.PUBLISHED.value,
        "gpu_model": request.GET.get("model", ""),
        "isolation": request.GET.get("isolation", ""),
        "region": request.GET.get("region", ""),
        "memory_gb__gte": chosen(request, "memory", dict(MEMORY)),
        "free_now": "true" if request.GET.get("free") == "now" else "",
        "limit": MOST,
    }
    return calls.get("/offerings?" + urlencode({name: value for name, value in asked.items() if value}))


def filters_of(request: PageRequest, everything: list[Item]) -> list[dict[str, Any]]:
    """Return the chips; their choices are what there is."""
    models = sorted({(i.offering.model, i.model) for i in everything})
    isolations = sorted({(i.offering.isolation, i.offering.isolation) for i in everything})
    regions = sorted({(i.offering.region, i.offering.region) for i in everything})
    known = [("model", "Model", models), ("memory", "Memory", MEMORY), ("isolation", "Isolation", isolations),
             ("region", "Region", regions), ("free", "Availability", FREE)]  # fmt: skip
    return [menu(request, name, label, choices) for name, label, choices in known]


def fits(request: PageRequest, item: Item) -> bool:
    """Tell whether an item passes every filter of the address."""
    asked, offering = request.GET, item.offering
    least = chosen(request, "memory", dict(MEMORY), "0")
    return (
        asked.get("model", "") in ("", offering.gpu_model_id)
        and asked.get("isolation", "") in ("", offering.isolation)
        and asked.get("region", "") in ("", offering.region)
        and offering.memory_gb >= int(least)
        and (asked.get("free") != "now" or item.free > 0)
    )


def groups(listed: list[Item], *, grouped: bool) -> list[tuple[str, list[Item]]]:
    """Return the items under their model, or as one list when they are sorted otherwise."""
    if not grouped:
        return [("All models", listed)] if listed else []
    found: dict[str, list[Item]] = {}
    for item in listed:
        found.setdefault(item.model, []).append(item)
    return list(found.items())


def left(item: Item, units: meters.Bar | None) -> int | None:
    """Return how many of it the project's quota of units still allows; None when nothing limits it."""
    if units is None or not item.offering.milli_units:
        return None
    return max(units.limit - units.used, 0) // item.offering.milli_units


def lines(request: PageRequest, listed: list[Item]) -> list[list[object]]:
    return [
        [s.offering.pk, s.offering.label, s.offering.gpu_model_id, s.offering.profile, s.offering.isolation,
         s.offering.price_class, s.offering.region, s.offering.memory_gb, s.free,
         "" if s.nano_per_hour is None else fixed_point(s.nano_per_hour, 9), request.tenant.currency]
        for item in listed for s in item.terms.values()
    ]  # fmt: skip
