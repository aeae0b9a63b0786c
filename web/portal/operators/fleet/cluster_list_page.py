"""Cluster list of operators: clusters with their nodes and usage."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from broker.models import NodeState
from broker.services.clusters.observed import observed_objects
from broker.services.inventory.gpu_catalogue import model_label
from broker.services.reports import fleet_gpus
from broker.services.reports.cluster_attention import unsold_nodes
from broker.services.reports.gpu_usage import CHARGED, SCALE, FleetGpu, UnitUse, counted_devices, devices_by_use
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.operators.fleet import gpu_map
from web.portal.operators.list_specs import ListState, OperatorList
from web.portal.operators.operator_lists import csv_time, read_lists, wants_csv
from web.portal.operators.page_context import OperatorRequest, operator_page

NODES_PER_PAGE = 40  # nodes on a page
USE_KINDS = (
    ("fill-sold", gettext_noop("sold"), CHARGED),
    ("reserved", gettext_noop("reserved"), (UnitUse.RESERVED,)),
    ("fill-free", gettext_noop("free"), (UnitUse.FREE,)),
    ("fragmented", gettext_noop("fragmented"), (UnitUse.FRAGMENTED,)),
    ("unhealthy", gettext_noop("unhealthy"), (UnitUse.UNHEALTHY,)),
    ("maintenance", gettext_noop("maintenance"), (UnitUse.MAINTENANCE,)),
)


@dataclass(frozen=True)
class NodeRow:
    """One node: its GPUs, its leases, and its usage by kind."""

    gpus: Sequence[FleetGpu]

    @property
    def first_gpu(self) -> FleetGpu:
        return self.gpus[0]

    @property
    def models(self) -> str:
        return ", ".join(sorted({model_label(gpu.model) for gpu in self.gpus}))

    @property
    def devices_text(self) -> str:
        return gpu_map.format_devices(self.gpus)

    @property
    def hardware_text(self) -> str:
        """Return what it has in words: 8 × H100 SXM 80GB, 2 CPU blocks."""
        return f"{len(self.gpus)} × {self.models}" if self.first_gpu.is_gpu else self.devices_text

    @property
    def sold_text(self) -> str:
        return _("{sold} of {devices} sold").format(
            sold=self.sold_gpus, devices=gpu_map.format_devices(counted_devices(self.gpus))
        )

    @property
    def leases(self) -> int:
        return len({s.lease for gpu in self.gpus for s in gpu.slices})

    @property
    def unhealthy(self) -> int:
        return sum(gpu.health == "unhealthy" for gpu in self.gpus)

    @cached_property
    def _use(self) -> dict[UnitUse, int]:
        return devices_by_use(counted_devices(self.gpus))

    @property
    def bar(self) -> list[tuple[str, int]]:
        used = self._use
        return [(kind, sum(used[use] for use in uses)) for kind, _word, uses in USE_KINDS]

    @property
    def sold_gpus(self) -> str:
        used = self._use
        return gpu_map.format_gpus(sum(used[use] for use in CHARGED))

    @property
    def usage_text(self) -> str:
        used = self._use
        parts = ((_(word), sum(used[use] for use in uses)) for _kind, word, uses in USE_KINDS)
        return ", ".join(f"{gpu_map.format_gpus(amount)} {word}" for word, amount in parts if amount >= SCALE // 20)


def _node_cells(each: NodeRow) -> tuple[object, ...]:
    first = each.first_gpu
    return (
        *(first.node, first.node_name, first.cluster, first.cluster_name, first.region, first.node_state),
        *(csv_time(first.node_since), each.models, len(each.gpus), each.sold_gpus, each.leases, each.unhealthy),
    )


NODE_LIST = OperatorList(
    name="nodes",
    heads="node name cluster cluster_name region state since models gpus sold leases unhealthy",
    cells=_node_cells,
    at="first_gpu__node_since",
    states=(
        ListState("", gettext_lazy("All")),
        *(
            ListState(each.value, each.label, test=lambda row, state=each: row.first_gpu.node_state == state)  # type: ignore[misc]
            for each in NodeState
        ),
    ),
    search=("first_gpu__node_name", "first_gpu__cluster_name", "first_gpu__node", "first_gpu__region", "models"),
)


@operator_page("clusters")
def list_clusters(request: OperatorRequest) -> Any:
    """List clusters with their nodes, paged by node.

    A cluster continues on the next page where the previous one ended.
    """
    fleet = fleet_gpus.load_gpus()
    nodes = [NodeRow(list(its)) for _, its in groupby(fleet, key=lambda gpu: (gpu.cluster_name, gpu.node_name))]
    lists = read_lists(request, NODE_LIST)
    if wants_csv(request):
        return lists.csv((NODE_LIST, lambda: nodes))
    listing = lists.read(NODE_LIST, nodes, most=NODES_PER_PAGE)
    wholes = {name: NodeRow(list(its)) for name, its in groupby(fleet, key=lambda gpu: gpu.cluster_name)}
    agents = {each.cluster_id: each for each in observed_objects.agent_statuses(now=request.now)}
    unsold = {cluster: list(rows) for cluster, rows in groupby(unsold_nodes(), key=lambda node: node.cluster_id)}
    blocks = [
        {
            "cluster": (first := its[0].first_gpu),
            "agent": agents.get(first.cluster),
            "whole": wholes[name],
            "unsold": unsold.get(first.cluster, []),
            "fixed": any(gpu.sellable.layout for gpu in wholes[name].gpus),
            "nodes": its,
        }
        for name, group in groupby(listing.rows, key=lambda node: node.first_gpu.cluster_name)
        for its in [list(group)]
    ]
    bare = [each for each in agents.values() if each.cluster_id not in {gpu.cluster for gpu in fleet}]
    keys = [{"kind": kind, "label": _(word), "value": ""} for kind, word, _uses in USE_KINDS]
    context = {
        "blocks": blocks,
        "listing": listing,
        "filter": lists.count_states(NODE_LIST, nodes),
        "bare": (
            []
            if listing.start or lists.filter.active or lists.filter.state
            else [(each, unsold.get(each.cluster_id, [])) for each in bare]
        ),
        "count": len(wholes) + len(bare),
        "keys": keys,
    }
    calls = [
        operator_api_call(_("Nodes"), "nodes", limit=API_PAGE_SIZE),
        operator_api_call(_("GPUs and their slices"), "ops/gpus", limit=API_PAGE_SIZE),
    ]
    return render(request, "operators/fleet/clusters.html", {**context, "calls": calls})
