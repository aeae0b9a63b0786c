"""Clusters and their nodes: what stands where, what is held, what takes nothing new."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from broker.portal import maps
from broker.portal.operations import OpsRequest, page
from broker.services import sightings
from broker.services.catalogue import short_name
from broker.services.fleet import cards
from broker.services.fleet.uses import CHARGED, SCALE, Card, Use, cards_by_use
from tenants.portal.acts import MOST, begin, ops_call

ROWS = 40  # nodes on a page, of up to as many clusters
KINDS = (
    ("k-sold", "sold", CHARGED),
    ("res", "reserved", (Use.RESERVED,)),
    ("k-free", "free", (Use.FREE,)),
    ("frag", "fragmented", (Use.FRAGMENTED,)),
    ("bad", "unhealthy", (Use.UNHEALTHY,)),
    ("off", "maintenance", (Use.MAINTENANCE,)),
)


@dataclass(frozen=True)
class NodeRow:
    """One node: its cards, its leases, and what each part of it is used for."""

    cards: Sequence[Card]

    @property
    def first(self) -> Card:
        return self.cards[0]

    @property
    def models(self) -> str:
        return ", ".join(sorted({short_name(card.model) for card in self.cards}))

    @property
    def leases(self) -> int:
        return len({s.lease for card in self.cards for s in card.slices})

    @property
    def unhealthy(self) -> int:
        return sum(card.health == "unhealthy" for card in self.cards)

    @property
    def bar(self) -> list[tuple[str, int]]:
        used = cards_by_use(self.cards)
        return [(kind, sum(used[use] for use in uses)) for kind, _, uses in KINDS]

    @property
    def sold(self) -> str:
        used = cards_by_use(self.cards)
        return maps.tenths(sum(used[use] for use in CHARGED))

    @property
    def words(self) -> str:
        used = cards_by_use(self.cards)
        parts = ((word, sum(used[use] for use in uses)) for _, word, uses in KINDS)
        return ", ".join(f"{maps.tenths(amount)} {word}" for word, amount in parts if amount >= SCALE // 20)


@require_safe
@page("clusters")
def clusters(request: OpsRequest) -> HttpResponse:
    """Show the clusters with their nodes, a page of them at once; a cluster goes on where the page before ended."""
    fleet = cards.load()
    nodes = [list(its) for _, its in groupby(fleet, key=lambda card: (card.cluster_name, card.node_name))]
    start = begin(request.GET.get("from", ""), len(nodes))
    shown = [card for node in nodes[start : start + ROWS] for card in node]
    wholes = {name: NodeRow(list(its)) for name, its in groupby(fleet, key=lambda card: card.cluster_name)}
    agents = {each.cluster_id: each for each in sightings.agents(now=request.now)}
    blocks = [
        {
            "cluster": its[0],
            "agent": agents.get(its[0].cluster),
            "whole": wholes[its[0].cluster_name],
            "fixed": any(card.wares.layout for card in wholes[its[0].cluster_name].cards),
            "nodes": [NodeRow(list(node)) for _, node in groupby(its, key=lambda card: card.node_name)],
        }
        for its in (list(group) for _, group in groupby(shown, key=lambda card: card.cluster_name))
    ]
    bare = [each for each in agents.values() if each.cluster_id not in {card.cluster for card in fleet}]
    keys = [{"kind": kind, "label": word, "value": ""} for kind, word, _ in KINDS]
    after = start + ROWS
    told = {
        "blocks": blocks,
        "bare": [] if start else bare,
        "count": len(wholes) + len(bare),
        "keys": keys,
        "nodes": len(nodes),
        "start": start + 1,
        "end": min(after, len(nodes)),
        "before": f"?from={max(start - ROWS, 0)}" if start else "",
        "after": f"?from={after}" if after < len(nodes) else "",
    }
    calls = [
        ops_call("Nodes", "nodes", limit=MOST),
        ops_call("Their cards and what each part of one is used for", "ops/gpus", limit=MOST),
    ]
    return render(request, "ops/clusters.html", {**told, "calls": calls})
