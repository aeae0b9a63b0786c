"""What could start now instead of something that waits."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from billing.portal import shelf
from billing.portal.pages import PageRequest
from billing.portal.rows import Row
from billing.portal.shelf import Sold

MOST = 2


@dataclass(frozen=True)
class Instead:
    """One offering that has room for the whole request now."""

    icon: str
    words: str
    sub: str
    url: str
    nano_per_hour: int


def instead(request: PageRequest, waiting: Sequence[Row]) -> list[list[Instead]]:
    """Return for each waiting row up to two things that could start now; no query when nothing waits."""
    if not waiting:
        return []
    sold = [each for each in shelf.sold(request) if each.nano_per_hour is not None]
    return [[_instead(row, each) for each in nearest(row, sold)] for row in waiting]


def nearest(row: Row, sold: Sequence[Sold]) -> list[Sold]:
    """Choose the cheapest that has as much memory and the largest that has less, of those with room for all."""
    wish, count = row.lease.offering, row.lease.quantity
    free = [each for each in sold if each.free >= count and each.offering.pk != wish.pk]
    enough = [each for each in free if each.offering.memory_gb >= wish.memory_gb]
    smaller = [each for each in free if each.offering.memory_gb < wish.memory_gb]
    terms = wish.price_class
    enough.sort(key=lambda each: (each.offering.price_class != terms, each.nano_per_hour, each.offering.pk))
    smaller.sort(
        key=lambda each: (each.offering.price_class != terms, -each.offering.memory_gb, each.nano_per_hour)
    )
    return [*enough[:1], *smaller[: MOST - len(enough[:1])]]


def _instead(row: Row, each: Sold) -> Instead:
    lease, offering = row.lease, each.offering
    asked = {"again": lease.pk, "offering": offering.pk, "class": offering.price_class}
    many = f"{lease.quantity} × " if lease.quantity > 1 else ""
    enough = offering.memory_gb >= lease.offering.memory_gb
    return Instead(
        icon="bolt" if enough else "arrow-down-right",
        words=f"Start now on {many}{offering.label}" + (" as spot" if each.terms == "spot" else ""),
        sub=f"{offering.memory_gb} GB each, {each.free} free in {offering.region}",
        url=f"{reverse('launch')}?{urlencode(asked)}",
        nano_per_hour=(each.nano_per_hour or 0) * lease.quantity,
    )
