"""How cards are cut, as rows have it and as the planner does."""

from collections.abc import Mapping

from django.db.models import F

from broker.domain.cuts import Catalogue, Cut
from broker.domain.geometry import Geometry
from broker.domain.states import Isolation
from broker.models import Gpu, LayoutPolicy
from broker.services.catalogue import spec_of

NOTHING = Cut()
PLANNED_FOR = {Isolation.DEVICE.value, Isolation.HARDWARE.value}


def cut_now(card: Gpu) -> Cut | None:
    """Return how a card is cut; None for one whose cut is not ours to change.

    It follows its leases, or is shared, or its node calls whatever it gives a card: how it is cut is only read.
    """
    if card.layout_policy != LayoutPolicy.FIXED:
        return None
    if any(each.get("isolation", Isolation.HARDWARE.value) not in PLANNED_FOR for each in card.fixed_layout):
        return None
    if any(each.get("asks") for each in card.fixed_layout):
        return None
    return Cut.of(str(each["profile"]) for each in card.fixed_layout)


def cut_as(card: Gpu, cut: Cut) -> None:
    """Write down that a card is cut so now."""
    spec = spec_of(card.gpu_model_id)
    layout = stored(Catalogue(spec, spec.profiles).geometry(cut))
    Gpu.objects.filter(pk=card.pk).update(
        layout_policy=LayoutPolicy.FIXED, fixed_layout=layout, version=F("version") + 1
    )


def stored(geometry: Geometry) -> list[dict[str, object]]:
    """Return a geometry as a card's row keeps it."""
    return [
        {
            "profile": held.profile.name,
            "start": held.placement.start,
            "size": held.placement.size,
            "isolation": held.profile.isolation.value,
        }
        for held in sorted(geometry.held, key=lambda each: each.placement)
    ]


def write(node_id: str, cuts: Mapping[int, Cut]) -> None:
    """Write down how all cards of a node are cut now."""
    for card in Gpu.objects.filter(node_id=node_id, index__in=cuts):
        cut_as(card, cuts[card.index])
