"""Load the fleet as operators see it: every card with whose leases lie on it. Must run as staff."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.db import connection

from broker.domain.packing import wares
from broker.domain.profiles import Placement, Profile
from broker.domain.states import LeaseState, PriceClass
from broker.models import Health, NodeState, Offering
from broker.services.catalogue import shape, spec_of
from broker.services.fleet.uses import Card, Slice
from broker.services.placement.cards import Pool, cut_of

CARDS = """
SELECT g.id, g.index, g.gpu_model_id, g.health, g.health_reason, extract(epoch FROM g.health_since)::float8,
       CASE WHEN g.layout_policy = 'fixed' THEN g.fixed_layout END,
       n.id, n.name, n.state, extract(epoch FROM n.state_since)::float8,
       c.id, c.name, c.region, floor(extract(epoch FROM c.created_at))::bigint, c.shares_soft_cards,
       CASE WHEN g.closed_since IS NULL THEN '' ELSE
         (SELECT l.step FROM broker_layoutchange l WHERE l.node_id = n.id ORDER BY l.planned_at DESC LIMIT 1) END
  FROM broker_gpu g JOIN broker_node n ON n.id = g.node_id JOIN broker_cluster c ON c.id = n.cluster_id
 WHERE (%(node)s = '' OR n.id = %(node)s) AND %(gpu)s IN ('', g.id, g.node_id || '.' || g.index)
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
       l.offering_id, o.price_class, t.id, t.name
  FROM broker_allocation a JOIN broker_lease l ON l.id = a.lease_id
  JOIN broker_offering o ON o.id = l.offering_id JOIN tenants_tenant t ON t.id = a.tenant_id
  JOIN broker_gpu g ON g.id = a.gpu_id
 WHERE a.released_at IS NULL AND (%(node)s = '' OR g.node_id = %(node)s) 
   AND %(gpu)s IN ('', g.id, g.node_id || '.' || g.index)
 ORDER BY a.gpu_id, lower(a.placement)
"""


def load(*, node: str = "", gpu: str = "") -> list[Card]:
    """Load all cards, those of one node or one alone, in the order of the racks; three queries.

    A card is named by its id, or by its node's id and its number there, as in `nod_….3`.
    """
    asked, offered = {"node": node, "gpu": gpu}, offered_profiles()
    with connection.cursor() as cursor:
        cursor.execute(CARDS, asked)
        cards = {row[0]: _card(row, offered) for row in cursor.fetchall()}
        cursor.execute(HELD, asked)
        for gpu_id, isolation, *row in cursor.fetchall():
            _put(cards[gpu_id], isolation, _slice(row))
    return list(cards.values())


def offered_profiles() -> dict[Pool, tuple[Profile, ...]]:
    """Return what is sold in each pool: the shapes that decide which free units are worth anything."""
    rows = Offering.objects.published().values_list("gpu_model_id", "region", "profile", "isolation")
    found: defaultdict[Pool, list[Profile]] = defaultdict(list)
    for model, region, profile, isolation in sorted(set(rows)):
        found[model, region].append(shape(model, profile, isolation))
    return {pool: tuple(profiles) for pool, profiles in found.items()}


def _card(row: Sequence[Any], offered: dict[Pool, tuple[Profile, ...]]) -> Card:
    pk, index, model, health, reason, health_since, layout, *place = row
    node, node_name, node_state, node_since, cluster, cluster_name, region, since, shares, cutting = place
    spec = spec_of(model)
    return Card(
        id=pk,
        index=index,
        model=model,
        grid=spec.grid,
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
        wares=wares(offered.get((model, region), ()), spec.grid, cut_of(model, layout) if layout else None),
    )


def _slice(row: Sequence[Any]) -> Slice:
    (
        start,
        size,
        profile,
        since,
        lease,
        name,
        state,
        ends,
        offering,
        price_class,
        tenant,
        tenant_name,
    ) = row
    return Slice(
        start=start,
        size=size,
        profile=profile,
        since_s=since,
        lease=lease,
        lease_name=name,
        state=LeaseState(state),
        ends_s=ends,
        offering=offering,
        price_class=PriceClass(price_class),
        tenant=tenant,
        tenant_name=tenant_name,
    )


def _put(card: Card, isolation: str, held: Slice) -> None:
    profile = shape(card.model, held.profile, isolation)
    card.state = card.state.with_held(profile, Placement(held.start, held.size))
    card.slices.append(held)
