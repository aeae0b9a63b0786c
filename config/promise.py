"""What stands beside the sign-in form: what is on sale right now, and how its cards can be cut."""

from collections.abc import Iterable
from typing import Any

from django.conf import settings

from billing.services import prices
from broker.domain.geometry import Geometry
from broker.domain.profiles import Profile
from broker.domain.states import Isolation, PriceClass
from broker.models import Offering
from broker.services import catalogue
from config import figures
from ports import clock

CARDS_A_ROW, ROWS = 6, 3
Span = tuple[int, int, str]


def promise() -> dict[str, Any] | None:
    """Return the catalogue in a few words and a picture, or None while nothing is on sale."""
    offers = list(Offering.objects.published())
    if not offers:
        return None
    smallest = min(offer.memory_gb for offer in offers)
    lines = [
        ("Slice", "legal, isolated, never sold twice", f"from {smallest} GB"),
        ("Seconds", "from ready to the end, none besides", "rounded once a line"),
        ("Invoice", "every line opens to what ran", "check it yourself"),
    ]
    if cheapest := lowest_price(offers):
        lines.insert(1, ("Price", "fixed for every second that passed", f"from {cheapest}"))
    return {"lines": lines, "slices": cuts(offers)}


def lowest_price(offers: list[Offering]) -> str:
    """Write the lowest price of what is on demand now, or nothing when none has a price."""
    on_demand = [offer.pk for offer in offers if offer.price_class == PriceClass.ON_DEMAND]
    known = prices.at(clock.now(), currency=settings.CURRENCY, offerings=on_demand)
    if not known:
        return ""
    return figures.price(min(price.nano_per_hour for price in known.values()), settings.CURRENCY) + "/h"


def cuts(offers: list[Offering]) -> list[list[list[Span]]]:
    """Return rows of cards, each cut in another legal way out of the shapes on sale for one model."""
    shapes: dict[str, dict[str, Profile]] = {}
    for offer in offers:
        if offer.isolation in {Isolation.DEVICE, Isolation.HARDWARE}:
            shape = catalogue.profile_of(offer)
            shapes.setdefault(offer.model, {})[shape.name] = shape
    if not shapes:
        return []
    model = max(shapes, key=lambda name: (len(shapes[name]), name))
    return cut_cards(shapes[model].values(), catalogue.spec_of(model).grid)


def cut_cards(shapes: Iterable[Profile], grid: int) -> list[list[list[Span]]]:
    """Return rows of cards, no two cut alike, each shape once the first to choose its place."""
    found = sorted(shapes, key=lambda shape: (-shape.memory, -shape.compute))
    ways: dict[str, Geometry] = {}
    for turn in range(len(found)):
        for first in range(len(found)):
            way = filled([found[first], *found[turn:], *found[:turn]])
            ways.setdefault(str(way), way)
    cards = [spans(way, grid) for way in ways.values()][: CARDS_A_ROW * ROWS]
    full = len(cards) - len(cards) % CARDS_A_ROW or len(cards)
    return [cards[at : at + CARDS_A_ROW] for at in range(0, full, CARDS_A_ROW)]


def filled(order: list[Profile]) -> Geometry:
    """Return a card on which each shape of the list took the first place that was left for it."""
    card = Geometry()
    for shape in order:
        place = next((place for place in shape.placements if card.fits(shape, place)), None)
        if place is not None:
            card = card.with_held(shape, place)
    return card


def spans(card: Geometry, grid: int) -> list[Span]:
    """Return a card as it is drawn, in eighths; neighbours take turns in colour."""
    places = sorted((held.placement for held in card.held), key=lambda place: place.start)
    taken = {unit for place in places for unit in range(place.start, place.end)}
    drawn = [
        (place.start * 8 // grid, place.size * 8 // grid, "spot" if i % 2 else "sold")
        for i, place in enumerate(places)
    ]
    return drawn + [(unit * 8 // grid, 8 // grid or 1, "free") for unit in range(grid) if unit not in taken]
