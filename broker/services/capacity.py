"""What is free: cards as placement sees them, availability per offering, and a preview of one placement."""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from django.db import connection

from broker.domain.geometry import CardState, Geometry, Held
from broker.domain.gpu_models import GpuModelSpec
from broker.domain.placement.gangs import choose_gang
from broker.domain.placement.pool import CardView, PoolIndex, Seat
from broker.domain.profiles import Placement, ProfileKind
from broker.domain.states import Isolation
from broker.models import Gpu, LayoutPolicy, Offering
from broker.provisioners.kubernetes.drivers.choosing import sold_uncut
from broker.services.catalogue import profile_of, shape, spec_of

# A pool is the cards that may serve each other's requests: one GpuModel in one region.
Pool = tuple[str, str]

CARDS = """
SELECT g.id, n.id, n.name, c.name, g.index, c.shares_soft_cards, g.gpu_model_id, c.region,
       g.layout_policy, g.fixed_layout, c.driver
  FROM broker_gpu g JOIN broker_node n ON n.id = g.node_id JOIN broker_cluster c ON c.id = n.cluster_id
 WHERE g.health = 'healthy' AND n.state = 'ready' AND g.closed_since IS NULL
   AND c.silent_since IS NULL AND c.frozen = ''
   AND (%(model)s = '' OR (g.gpu_model_id = %(model)s AND c.region = %(region)s))
 ORDER BY c.name, n.name, g.index
"""
# Read through the view, which tells whose a place is only to its own tenant.
OCCUPIED = """
SELECT o.gpu_id, g.node_id, o.profile, o.isolation, o.start, o.mine FROM broker_occupied o
  JOIN broker_gpu g ON g.id = o.gpu_id WHERE %(model)s = '' OR g.gpu_model_id = %(model)s
"""
STRANGERS = """
SELECT EXISTS (
  SELECT FROM broker_occupied o JOIN broker_gpu g ON g.id = o.gpu_id WHERE g.node_id = %s AND NOT o.mine)
"""


@dataclass
class Card:
    """One sellable card with what lies on it; `strangers` tells that another tenant holds some of it, or may."""

    gpu: str
    node: str
    node_name: str
    cluster: str
    index: int
    shares_soft: bool
    model: str
    region: str
    layout: Geometry | None
    uncut: frozenset[Isolation] = frozenset(Isolation)  # as what it is sold where no layout says that
    state: CardState = field(default_factory=CardState)
    strangers: bool = False
    held: list[tuple[str, Placement, bool]] = field(default_factory=list)  # profile, where, mine

    @property
    def view(self) -> CardView:
        return CardView(self.gpu, self.node, self.state, self.layout)

    @property
    def picked_by_node(self) -> bool:
        """Tell whether a share of it may turn out to be one of another card: its node hands out any replica."""
        return (
            any(held.profile.kind is ProfileKind.SHARE for held in self.layout.held) if self.layout else False
        )

    @property
    def where(self) -> str:
        return f"{self.cluster} / {self.node_name} / card {self.index}"


@dataclass(frozen=True)
class Seating:
    """Where a request would go now, with the cards it would go to."""

    seats: tuple[Seat, ...]
    cards: dict[str, Card]


def pool_of(offering: Offering) -> Pool:
    return offering.gpu_model_id, offering.region


def cards_of(pool: Pool | None) -> list[Card]:
    """Load the sellable cards of a pool (None: of every pool) with what is held on them; two queries."""
    model, region = pool or ("", "")
    with connection.cursor() as cursor:
        cursor.execute(CARDS, {"model": model, "region": region})
        cards = {row[0]: _card(row) for row in cursor.fetchall()}
        cursor.execute(OCCUPIED, {"model": model})
        visited = set()  # nodes on which a stranger holds something
        for gpu, node, profile, isolation, start, mine in cursor.fetchall():
            visited |= set() if mine else {node}
            if card := cards.get(gpu):
                _put(card, profile, Isolation(isolation), start, mine)
    for card in cards.values():
        card.strangers = card.strangers or (card.node in visited and card.picked_by_node)
    return list(cards.values())


def has_strangers(node: str) -> bool:
    """Tell whether another tenant holds anything on a node. Must run inside the tenant's wall."""
    with connection.cursor() as cursor:
        cursor.execute(STRANGERS, [node])
        return bool(cursor.fetchone()[0])


def _card(row: Sequence[object]) -> Card:
    gpu, node, node_name, cluster, index, shares, model, region, policy, layout, driver = row
    card = Card(
        str(gpu),
        str(node),
        str(node_name),
        str(cluster),
        int(str(index)),
        bool(shares),
        str(model),
        str(region),
        None,
        sold_uncut(str(driver)),
    )
    if policy == LayoutPolicy.FIXED:
        card.layout = cut_of(card.model, str(layout))
    return card


@lru_cache(maxsize=4096)
def cut_of(model: str, layout: str) -> Geometry:
    """Read a layout once: a fleet has few, and every placement looks at every card."""
    return fixed_geometry(spec_of(model), json.loads(layout))


def fixed_geometry(spec: GpuModelSpec, layout: Iterable[dict[str, object]]) -> Geometry:
    """Turn a card's stored cut into the domain's; raises ValueError for a slice the model does not have."""
    held = []
    for cut in layout:
        profile = spec.profile(str(cut["profile"]), Isolation(str(cut.get("isolation", Isolation.HARDWARE))))
        held.append(Held(profile.placed_at(int(str(cut["start"]))), profile))
    return Geometry(frozenset(held))


def _put(card: Card, name: str, isolation: Isolation, start: int, mine: bool) -> None:
    profile = shape(card.model, name, isolation)
    placement = profile.placed_at(start)
    card.state = card.state.with_held(profile, placement)
    card.strangers = card.strangers or not mine
    card.held.append((name, placement, mine))


def usable(cards: Collection[Card], isolation: Isolation) -> list[CardView]:
    """Leave out cards that cannot be had so, and those that a class without a wall may not share with strangers."""
    had = (card for card in cards if card.layout is not None or isolation in card.uncut)
    if isolation in (Isolation.DEVICE, Isolation.HARDWARE):
        return [card.view for card in had]
    return [card.view for card in had if card.shares_soft or not card.strangers]


def seat(offering: Offering, cards: Collection[Card], *, quantity: int, same_node: bool) -> Seating | None:
    """Choose seats for a whole request, or None when it does not fit now.

    All of a request lies in one cluster: its pods find each other by names that only their own cluster knows.
    """
    spec, profile = spec_of(offering.gpu_model_id), profile_of(offering)
    for together in by_cluster(cards) if quantity > 1 else [cards]:
        views = usable(together, Isolation(offering.isolation))
        seats = choose_gang(views, profile, spec, count=quantity, same_node=same_node)
        if seats is not None:
            taken = {s.gpu for s in seats}
            return Seating(seats, {card.gpu: card for card in together if card.gpu in taken})
    return None


def by_cluster(cards: Iterable[Card]) -> list[list[Card]]:
    """Return the cards of each cluster together, the smallest first: the large ones are kept for large requests."""
    clusters: defaultdict[str, list[Card]] = defaultdict(list)
    for card in cards:
        clusters[card.cluster].append(card)
    return sorted(clusters.values(), key=lambda together: (len(together), together[0].cluster))


def within(cluster: str, cards: Collection[Card]) -> list[Card]:
    """Return the cards of one cluster by its name; of all where none is named."""
    return [card for card in cards if card.cluster == cluster or not cluster]


def preview(
    offering: Offering, *, quantity: int = 1, same_node: bool = False, cluster: str = ""
) -> Seating | None:
    """Say where a request would go now, without taking anything. Must run inside the tenant's wall.

    `cluster` is the only one it may go to: where its volume lies.
    """
    cards = within(cluster, cards_of(pool_of(offering)))
    return seat(offering, cards, quantity=quantity, same_node=same_node)


def could_ever_fit(
    offering: Offering, *, quantity: int, same_node: bool, in_service: bool = False, cluster: str = ""
) -> int:
    """Return how many of the offering the best cluster of the pool (or its best node) could hold if it were empty.

    `in_service` counts only the cards that may be placed on now, not those that may come back, and as they are cut
    now: a cluster that cuts its nodes anew by itself may else come to hold whatever its cards can be cut into.
    `cluster` asks of that one alone, by its name.
    """
    spec, profile = spec_of(offering.gpu_model_id), profile_of(offering)
    cards = Gpu.objects.sellable() if in_service else Gpu.objects.all()
    cards = cards.filter(gpu_model_id=offering.gpu_model_id, node__cluster__region=offering.region)
    if cluster:
        cards = cards.filter(node__cluster__name=cluster)
    rows = cards.values_list(
        "id",
        "node_id",
        "node__cluster_id",
        "layout_policy",
        "fixed_layout",
        "node__cluster__recuts",
        "node__cluster__driver",
    )
    together: defaultdict[str, list[CardView]] = defaultdict(list)
    for gpu, node, where, policy, layout, recuts, driver in rows:
        cut = policy == LayoutPolicy.FIXED
        if not cut and profile.isolation not in sold_uncut(driver):
            continue
        stays = (
            in_service or not recuts or profile.kind is ProfileKind.SHARE
        )  # nobody cuts a card into shares
        geometry = fixed_geometry(spec, layout) if cut and stays else None
        together[node if same_node else where].append(CardView(gpu, node, CardState(), geometry))
    return max((PoolIndex(spec, views).how_many_fit(profile) for views in together.values()), default=0)


def availability(offerings: Iterable[Offering], *, cluster: str = "") -> dict[str, int]:
    """Return exactly how many of each offering could be placed now, each counted alone; two queries in all.

    `cluster` counts those of that one alone, by its name.
    """
    cards: defaultdict[Pool, list[Card]] = defaultdict(list)
    for card in within(cluster, cards_of(None)):
        cards[card.model, card.region].append(card)
    indexes: dict[tuple[Pool, Isolation], PoolIndex] = {}
    free = {}
    for offering in offerings:
        pool, isolation = pool_of(offering), Isolation(offering.isolation)
        # Whoever cuts cards sells them whole as well: one index for both.
        kind = Isolation.HARDWARE if isolation is Isolation.DEVICE else isolation
        if (pool, kind) not in indexes:
            indexes[pool, kind] = PoolIndex(spec_of(pool[0]), usable(cards[pool], kind))
        free[offering.pk] = indexes[pool, kind].how_many_fit(profile_of(offering))
    return free
