"""Load the fleet as operators see it: every card with whose leases lie on it. Must run as staff."""

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

from django.db import connection

from broker.domain.geometry import EMPTY, CardState
from broker.domain.packing import Wares, wares
from broker.domain.profiles import Profile
from broker.domain.states import Isolation, LeaseState, PriceClass
from broker.models import Health, NodeState, Offering
from broker.services.catalogue import shape, spec_of
from broker.services.fleet.uses import Card, Slice
from broker.services.placement.cards import Pool, cut_of, publishes_of

CARDS = """
SELECT g.id, g.index, g.gpu_model_id, g.health, g.health_reason, extract(epoch FROM g.health_since)::float8,
       CASE WHEN g.layout_policy = 'fixed' THEN g.fixed_layout END, g.published,
       n.id, n.name, n.state, extract(epoch FROM n.state_since)::float8,
       c.id, c.name, c.region, floor(extract(epoch FROM c.created_at))::bigint, c.shares_soft_cards,
       CASE WHEN g.closed_since IS NULL THEN '' ELSE
         (SELECT l.step FROM broker_layoutchange l WHERE l.node_id = n.id ORDER BY l.planned_at DESC LIMIT 1) END
  FROM broker_gpu g JOIN broker_node n ON n.id = g.node_id JOIN broker_cluster c ON c.id = n.cluster_id
 WHERE true {and_asked}
 ORDER BY c.name, n.name, g.index
"""
# A place that its lease went on without is on its way out, whatever the lease is elsewhere; nobody knows its end.
HELD = """
SELECT a.gpu_id, a.isolation, lower(a.placement), upper(a.placement) - lower(a.placement), a.profile,
       extract(epoch FROM CASE WHEN a.leaving_since IS NOT NULL THEN a.leaving_since
                               WHEN l.state = 'active' THEN coalesce(l.active_at, a.held_at)
                               ELSE a.held_at END)::float8,
       l.id, l.name, CASE WHEN a.leaving_since IS NULL THEN l.state ELSE 'releasing' END,
       CASE WHEN a.leaving_since IS NULL THEN extract(epoch FROM l.ends_at)::float8 END,
       l.offering_id, o.price_class, extract(epoch FROM a.held_at)::float8,
       CASE WHEN l.state = 'active' AND l.generation = a.generation THEN extract(epoch FROM l.at)::bigint END,
       t.id, t.name
  FROM broker_allocation a JOIN broker_lease l ON l.id = a.lease_id
  JOIN broker_offering o ON o.id = l.offering_id JOIN tenants_tenant t ON t.id = a.tenant_id
  {of_cards}
 WHERE a.released_at IS NULL {and_asked}
 ORDER BY a.gpu_id, lower(a.placement)
"""
ONE_NODE = " AND g.node_id = %(node)s"
ONE_CARD = " AND %(gpu)s IN (g.id, g.node_id || '.' || g.index)"
# Of a thousand rows each word is looked up, not constructed.
STATES = {each.value: each for each in LeaseState}
CLASSES = {each.value: each for each in PriceClass}


def load(*, node: str = "", gpu: str = "") -> list[Card]:
    """Load all cards, those of one node or one alone, in the order of the racks; three queries.

    A card is named by its id, or by its node's id and its number there, as in `nod_….3`.
    """
    asked, loading = {"node": node, "gpu": gpu}, _Loading(offered_profiles())
    parts = {
        "and_asked": (ONE_NODE if node else "") + (ONE_CARD if gpu else ""),
        "of_cards": "JOIN broker_gpu g ON g.id = a.gpu_id" if node or gpu else "",
    }
    with connection.cursor() as cursor:
        cursor.execute(CARDS.format(**parts), asked)
        cards = {row[0]: loading.card(row) for row in cursor.fetchall()}
        cursor.execute(HELD.format(**parts), asked)
        for gpu_id, rows in groupby(cursor.fetchall(), key=itemgetter(0)):
            _put(cards[gpu_id], list(rows))
    return list(cards.values())


def offered_profiles() -> dict[Pool, tuple[Profile, ...]]:
    """Return what is sold in each pool: the shapes that decide which free units are worth anything."""
    rows = Offering.objects.published().values_list("gpu_model_id", "region", "profile", "isolation")
    found: defaultdict[Pool, list[Profile]] = defaultdict(list)
    for model, region, profile, isolation in sorted(set(rows)):
        found[model, region].append(shape(model, profile, isolation))
    return {pool: tuple(profiles) for pool, profiles in found.items()}


class _Loading:
    """What all cards of a kind share is made once."""

    def __init__(self, offered: dict[Pool, tuple[Profile, ...]]) -> None:
        self._offered = offered
        self._wares: dict[tuple[str, str, str | None, str | None], Wares] = {}

    def card(self, row: Sequence[Any]) -> Card:
        pk, index, model, health, reason, health_since, layout, told, *place = row
        node, node_name, node_state, node_since, cluster, cluster_name, region, since, shares, cutting = place
        why = ""
        try:
            sold = self._sold(model, region, layout or None, told)
        except ValueError as error:
            sold, why = self._sold(model, region, None, told), str(error)
        return Card(
            id=pk,
            index=index,
            model=model,
            grid=sold.grid,
            health=Health(health),
            health_reason=reason,
            health_since_s=health_since,
            node=node,
            node_name=node_name,
            node_state=NodeState(node_state),
            node_since_s=node_since,
            cluster=cluster,
            cluster_name=cluster_name,
            region=region,
            since_s=since,
            shares=shares,
            cutting=cutting,
            wares=sold,
            unreadable=why,
        )

    def _sold(self, model: str, region: str, layout: str | None, told: str | None) -> Wares:
        key = model, region, layout, told
        if key not in self._wares:
            sold = self._offered.get((model, region), ())
            cut = cut_of(model, layout) if layout else None
            self._wares[key] = wares(
                publishes_of(told).only(sold) if told else sold, spec_of(model).grid, cut
            )
        return self._wares[key]


def _put(card: Card, rows: Sequence[Sequence[Any]]) -> None:
    """Lay what holds places of a card on it: gpu, isolation, start, size, profile, and whose each is."""
    try:
        card.state = _state(card.model, tuple(row[1:5] for row in rows))
    except ValueError as error:
        card.unreadable, card.state = str(error), _as_written(rows)
    card.slices = [
        Slice(
            start,
            size,
            profile,
            since,
            lease,
            name,
            STATES[state],
            ends,
            offering,
            CLASSES[price_class],
            *rest,
        )
        for _, _, start, size, profile, since, lease, name, state, ends, offering, price_class, *rest in rows
    ]


def _as_written(rows: Sequence[Sequence[Any]]) -> CardState:
    """Return what is taken by rows that cannot be right."""
    mask = 0
    for row in rows:
        mask |= ((1 << row[3]) - 1) << row[2]
    return CardState(mask, isolation=Isolation(rows[0][1]))


@lru_cache(maxsize=16384)
def _state(model: str, places: tuple[tuple[str, int, int, str], ...]) -> CardState:
    """Return what decides what still fits beside these: (isolation, start, size, profile).

    Raises ValueError for what its model does not have there.
    """
    state = EMPTY
    for isolation, start, size, profile in places:
        its = shape(model, profile, isolation)
        if size != its.memory:
            raise ValueError(f"{profile} takes {its.memory} units, and {size} are held for it")
        state = state.with_held(its, its.placed_at(start))
    return state
