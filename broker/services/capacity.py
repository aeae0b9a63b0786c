"""What one could have now: availability per offering, a preview of one placement, and what could ever be placed.

Cards that are kept for those who have waited too long are told in by the caller (`leases.precedence.kept_in`).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from broker.domain.geometry import EMPTY
from broker.domain.packing import most_of
from broker.domain.placement.topology import ASKED
from broker.domain.profiles import Profile, ProfileKind
from broker.domain.states import Isolation
from broker.models import Offering
from broker.services.catalogue import profile_of
from broker.services.placement.cards import Card, Pool
from broker.services.placement.engine import up_to_date
from broker.services.placement.seating import Seating, Wish, drawn, how_many, own_places, pool_of, seat
from broker.services.placement.stock import WALLED

# By pool the cards that are kept for others, and None where nobody who comes now is placed at all.
KeptCards = Mapping[Pool, frozenset[str] | None]
NOTHING: KeptCards = {}
__all__ = ["Card", "Seating", "availability", "could_ever_fit", "pool_of", "preview", "when_empty"]


def preview(
    offering: Offering,
    *,
    quantity: int = 1,
    same_node: bool = False,
    topology: str = "",
    cluster: str = "",
    kept: KeptCards = NOTHING,
) -> Seating | None:
    """Say where a request would go now, without taking anything. Must run inside the tenant's wall.

    `cluster` is the only one it may go to: where its volume lies. `kept` are cards that it may not have.
    """
    without = kept.get(pool_of(offering), frozenset())
    if without is None:
        return None
    with up_to_date() as stock:
        seating = seat(Wish(offering, quantity, same_node, topology, cluster, not_at=without), stock)
    return drawn(seating) if seating else None


def could_ever_fit(
    offering: Offering,
    *,
    quantity: int,
    same_node: bool,
    topology: str = "",
    in_service: bool = False,
    cluster: str = "",
) -> int:
    """Return how many of the offering the best cluster of the pool (or its best node) could hold if it were empty.

    `in_service` counts only the cards that may be placed on now, not those that may come back, and as they are cut
    now: a cluster that cuts its nodes anew by itself may else come to hold whatever its cards can be cut into.
    `cluster` asks of that one alone, by its name. `topology` counts those of a node that are as near to each other.
    """
    profile, together = profile_of(offering), Counter[str]()
    near = defaultdict[str, list[str]](list)
    with up_to_date() as stock:
        for card in stock.by_pool[pool_of(offering)].values():
            if cluster in ("", card.cluster) and (card.sellable or not in_service):
                there = card.node if same_node else card.cluster
                together[there] += (fits := when_empty(card, profile, as_cut_now=in_service))
                near[card.node] += [card.gpu] * (fits > 0)
        if topology:
            linked = (node for node in near if node in stock.links)
            return max((stock.links[node].most(near[node], ASKED[topology]) for node in linked), default=0)
    return max(together.values(), default=0)


def when_empty(card: Card, profile: Profile, *, as_cut_now: bool) -> int:
    """Return how many of a profile a card holds once nobody is on it."""
    if not card.sold_as(profile.isolation):
        return 0
    stays = (
        as_cut_now or not card.recuts or profile.kind is ProfileKind.SHARE
    )  # nobody cuts a card into shares
    return most_of(profile, EMPTY, card.cut if stays else card.publishes)


def availability(
    offerings: Iterable[Offering], *, cluster: str = "", kept: KeptCards = NOTHING
) -> dict[str, int]:
    """Return exactly how many of each offering could be placed now, each counted alone.

    `cluster` counts those of that one alone, by its name. `kept` are cards that are not counted.
    """
    asked = list(offerings)
    unwalled = [o for o in asked if Isolation(o.isolation) not in WALLED]
    with up_to_date() as stock:
        mine = own_places(Isolation(unwalled[0].isolation)) if unwalled else {}
        found = {}
        for each in asked:
            without = kept.get(pool_of(each), frozenset())
            found[each.pk] = (
                0 if without is None else how_many(each, stock, mine=mine, cluster=cluster, without=without)
            )
        return found
