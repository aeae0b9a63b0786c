"""Reports that contradict our books: leases would have places that their card does not have. Nobody guesses then.

A node may have been cut anew by hand beneath its leases, or its plugin counts slices of which it lost some. Which of
those that are left are free cannot be told: until places and report agree again, or the leases ended, its cards stay as
they were in the books and nothing new comes onto them.
"""

from collections.abc import Iterable, Sequence

from broker.models import Allocation, Gpu
from broker.provisioners.kubernetes.inventory import CardFound
from broker.services import catalogue
from tenants.services.walls import as_sweep

QUARANTINED = "its leases have places that its node does not report"
Place = tuple[str, str, int]  # profile, isolation, first unit


def contradiction(cards: Iterable[Gpu], reported: Iterable[CardFound]) -> str:
    """Say which leased place the cards of a node would no longer have; empty where books and report agree."""
    known = {card.index: card for card in cards}
    there = {
        known[found.index].pk: places
        for found in reported
        if found.index in known and (places := _places(known[found.index], found)) is not None
    }
    if not there:
        return ""
    with as_sweep():
        held = Allocation.objects.filter(gpu__in=there, released_at=None).order_by("gpu__index", "placement")
        rows = list(held.values_list("gpu_id", "gpu__index", "profile", "isolation", "placement"))
    lost = [
        f"card {index} has no {profile} at {placement.lower}"
        for gpu, index, profile, isolation, placement in rows
        if (profile, isolation, placement.lower) not in there[gpu]
    ]
    return f"{QUARANTINED}: {lost[0]} for one of {len(lost)}; nothing new is placed on it" if lost else ""


def _places(card: Gpu, found: CardFound) -> Sequence[Place] | None:
    """Return the places of a card that is reported otherwise than it is in the books; None where nothing is new.

    What is cut for each lease has no places of its own, and takes what lies on it as it is.
    """
    if catalogue.spec_of(found.model).name != card.gpu_model_id:
        return []
    if not found.cuts:
        return None
    places = [(cut.profile, str(found.isolation), cut.start) for cut in found.cuts]
    booked = [(cut["profile"], cut.get("isolation", ""), cut["start"]) for cut in card.fixed_layout]
    return places if places != booked else None
