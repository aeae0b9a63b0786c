"""What a plan is made of: one cluster's cards of one model with what lies on them, as the planner reads them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import connection

from broker.domain.placement import prices
from broker.domain.placement.buckets import Buckets
from broker.domain.placement.evacuating import Near
from broker.domain.placement.fleet import Fleet, Slice
from broker.domain.placement.rules import ranks_by_price
from broker.domain.placement.topology import Link, Wired, wired
from broker.domain.published import Published, published
from broker.domain.states import Isolation, LeaseState
from broker.models import Allocation, Cluster, Gpu, LayoutPolicy
from broker.provisioners.kubernetes.drivers.choosing import picks_cards, sold_uncut
from broker.services.catalogue import spec_of
from tenants.services.walls import as_staff

GOES_ON = timedelta(minutes=30)  # what ends sooner makes room by itself
STOP_S, UNKNOWN_S, LATEST = 5, 30, 200
# How long the latest starts on these cards took, for what a move costs is that its program stands still.
STARTS = """
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY seconds) FROM (
  SELECT extract(epoch FROM ready.at - ready.prev_at)::int AS seconds
    FROM broker_transition ready JOIN broker_offering o ON o.id = ready.offering_id
   WHERE ready.before = 'provisioning' AND ready.after = 'active' AND o.gpu_model_id = %s AND o.region = %s
   ORDER BY ready.xid DESC, ready.position DESC LIMIT %s) latest
"""


@dataclass(frozen=True)
class Pool:
    """Cards are numbered as they are listed; slices are called by their allocation's id, profiles have numbers."""

    cluster: Cluster
    model: str
    cards: tuple[Gpu, ...]
    held: dict[str, Allocation]
    fleet: Fleet
    numbers: dict[tuple[str, str], int]  # by name and isolation

    @property
    def grid(self) -> int:
        return self.fleet.table.grid

    def name(self, card: int) -> str:
        gpu = self.cards[card]
        return f"{gpu.node} / card {gpu.index}"

    def near(self, within: Link) -> Near:
        """Return what tells whether cards of one node reach each other by links no longer than this."""
        on_node: dict[str, list[Wired]] = {}
        for gpu in self.cards:
            on_node.setdefault(gpu.node_id, []).append(Wired(gpu.pk, gpu.fabric, gpu.numa))
        links = {node: wired(cards) for node, cards in on_node.items()}

        def are_near(cards: tuple[int, ...]) -> bool:
            known = links[self.cards[cards[0]].node_id]
            return known is not None and known.most([self.cards[n].pk for n in cards], within) == len(cards)

        return are_near


def pools_of(cluster: Cluster, *, now: datetime) -> list[Pool]:
    """Load every pool of a cluster in which slices are cut for each lease where we say: others have no such place."""
    picks = picks_cards(cluster.driver, cluster.driver_options)
    if picks or Isolation.HARDWARE not in sold_uncut(cluster.driver):
        return []
    rows = Gpu.objects.filter(layout_policy=LayoutPolicy.DYNAMIC).sellable().filter(node__cluster=cluster)
    rows = rows.select_related("node").order_by("node__name", "index")
    # A card that cannot be cut into all that its model can is planned among those that can be cut into just as much.
    alike: defaultdict[tuple[str, Published | None], list[Gpu]] = defaultdict(list)
    with as_staff():
        held = _held(list(rows))
        for card in rows:
            told = published(card.published) if card.published is not None else None
            alike[card.gpu_model_id, told].append(card)
        return [
            _pool(cluster, model, told, cards, held, now)
            for (model, told), cards in sorted(alike.items(), key=lambda each: each[0][0])
        ]


def _held(cards: Sequence[Gpu]) -> dict[str, list[Allocation]]:
    found: dict[str, list[Allocation]] = {card.pk: [] for card in cards}
    rows = Allocation.objects.filter(gpu__in=list(found), released_at=None).select_related("lease")
    for each in rows.order_by("gpu_id", "placement"):
        found[each.gpu_id].append(each)
    return found


def _pool(
    cluster: Cluster,
    model: str,
    told: Published | None,
    cards: list[Gpu],
    held: dict[str, list[Allocation]],
    now: datetime,
) -> Pool:
    spec = spec_of(model)
    profiles = (spec.whole, *spec.sold_as(Isolation.HARDWARE))
    profiles = told.only(profiles) if told else profiles
    numbers = {(each.name, each.isolation.value): n for n, each in enumerate(profiles)}
    # What holds a share, or what its card no longer publishes, has no number: nothing is planned on that card.
    walled = [
        card for card in cards if all((each.profile, each.isolation) in numbers for each in held[card.pk])
    ]
    ranks = ranks_by_price(profiles, spec.grid, prices.default(profiles, spec.grid))
    nodes = {node: n for n, node in enumerate(sorted({card.node_id for card in walled}))}
    fleet = Fleet(Buckets(ranks, [nodes[card.node_id] for card in walled]))
    cost_s = STOP_S + _start_s(model, cluster.region)
    for number, card in enumerate(walled):
        for each in held[card.pk]:
            profile, start = numbers[each.profile, each.isolation], each.placement.lower
            cost = cost_s if _may_move(each, now) else None
            fleet.hold(number, Slice(each.pk, profile, start, cost, each.tenant_id))
    everything = {each.pk: each for its in held.values() for each in its}
    return Pool(cluster, model, tuple(walled), everything, fleet, numbers)


def _may_move(held: Allocation, now: datetime) -> bool:
    """Tell whether a place's lease may be moved: it says so, goes on for a while, and is whole on this one place."""
    lease = held.lease
    at_rest = lease.state == LeaseState.ACTIVE and not lease.conditions and held.leaving_since is None
    present = held.generation == lease.generation and lease.quantity == 1
    return (
        lease.movable and at_rest and present and lease.ends_at is not None and lease.ends_at > now + GOES_ON
    )


def _start_s(model: str, region: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(STARTS, [model, region, LATEST])
        median = cursor.fetchone()[0]
        return UNKNOWN_S if median is None else int(median)
