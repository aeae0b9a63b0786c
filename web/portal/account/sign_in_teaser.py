"""Teaser beside the sign-in form: what is on sale, and how GPUs can be partitioned."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from billing.services.catalogue import price_list
from broker.domain.geometry.gpu_state import Geometry
from broker.domain.geometry.profiles import Profile
from broker.domain.lifecycle.states import Isolation
from broker.models import Offering
from broker.services.inventory import gpu_catalogue
from ports import clock
from web.ui import formatting

GPUS_PER_ROW, ROWS = 6, 3
TeaserSpan = tuple[int, int, str]


def sign_in_teaser() -> dict[str, Any] | None:
    """Return the teaser's texts and picture; None while nothing is on sale."""
    offers = [each for each in Offering.objects.published() if not each.is_cpu_only]
    if not offers:
        return None
    smallest = min(offer.memory_gb for offer in offers)
    lines = [
        (_("Slice"), _("isolated, never sold twice"), _("from {smallest} GB").format(smallest=smallest)),
        (_("Seconds"), _("billed only while running"), _("rounded once per line")),
        (_("Invoice"), _("every line shows its usage"), _("verify it yourself")),
    ]
    nano = price_list.lowest_on_demand_price(clock.now(), currency=settings.CURRENCY)
    if nano is not None:
        cheapest = formatting.format_price(nano, settings.CURRENCY) + "/h"
        lines.insert(1, (_("Price"), _("never changed retroactively"), _("from {cheapest}").format(cheapest=cheapest)))
    return {"lines": lines, "slices": partitioned_gpus(offers)}


def partitioned_gpus(offers: list[Offering]) -> list[list[list[TeaserSpan]]]:
    """Return rows of GPUs, each partitioned differently by shapes on sale of one model."""
    shapes: dict[str, dict[str, Profile]] = {}
    for offer in offers:
        if offer.isolation in {Isolation.DEVICE, Isolation.HARDWARE}:
            shape = gpu_catalogue.profile_of(offer)
            shapes.setdefault(offer.model, {})[shape.name] = shape
    if not shapes:
        return []
    model = max(shapes, key=lambda name: (len(shapes[name]), name))
    return partition_gpus(shapes[model].values(), gpu_catalogue.gpu_model_spec(model).grid)


def partition_gpus(shapes: Iterable[Profile], grid: int) -> list[list[list[TeaserSpan]]]:
    """Return rows of GPUs, no two partitioned alike, each shape placed first once."""
    found = sorted(shapes, key=lambda shape: (-shape.memory, -shape.compute))
    ways: dict[str, Geometry] = {}
    for turn in range(len(found)):
        for first in range(len(found)):
            way = fill_gpu([found[first], *found[turn:], *found[:turn]])
            ways.setdefault(str(way), way)
    gpus = [gpu_spans(way, grid) for way in ways.values()][: GPUS_PER_ROW * ROWS]
    full = len(gpus) - len(gpus) % GPUS_PER_ROW or len(gpus)
    return [gpus[at : at + GPUS_PER_ROW] for at in range(0, full, GPUS_PER_ROW)]


def fill_gpu(order: list[Profile]) -> Geometry:
    """Return a GPU on which each shape took the first free placement."""
    gpu = Geometry()
    for shape in order:
        place = next((place for place in shape.placements if gpu.fits(shape, place)), None)
        if place is not None:
            gpu = gpu.with_held(shape, place)
    return gpu


def gpu_spans(gpu: Geometry, grid: int) -> list[TeaserSpan]:
    """Return a GPU's spans in eighths; neighbours alternate in colour."""
    places = sorted((held.placement for held in gpu.held), key=lambda place: place.start)
    taken = {unit for place in places for unit in range(place.start, place.end)}
    drawn = [
        (place.start * 8 // grid, place.size * 8 // grid, "spot" if i % 2 else "sold") for i, place in enumerate(places)
    ]
    return drawn + [(unit * 8 // grid, 8 // grid or 1, "free") for unit in range(grid) if unit not in taken]
