"""Node pages of operators: GPUs, leases, cordon, drain, release."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from broker.models import Node, NodeState
from broker.services.inventory import hardware
from broker.services.leases.lifecycle import eviction
from broker.services.reports import fleet_gpus, inventory_history
from tenants.services.errors import ProblemError
from tenants.services.rls import staff_scope
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.operators.fleet import gpu_map
from web.portal.operators.fleet.cluster_list_page import NodeRow
from web.portal.operators.fleet.fleet_lists import CHANGE_LIST, NODE_LEASE_LIST
from web.portal.operators.operator_lists import read_lists, wants_csv
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    find_in_scope,
    operator_page,
)


class NotSimulated(ProblemError):
    code, status, title = "not-simulated", 409, "Node loss can be simulated on simulated clusters only"


def find_node(pk: str) -> Node:
    rows = Node.objects.select_related("cluster")
    return find_in_scope(rows, pk, _("Node"), fix=_("Select it from Clusters and nodes."))


def load_node_row(node: Node) -> NodeRow:
    """Load a node's GPUs with their leases."""
    with staff_scope():
        return NodeRow(fleet_gpus.load_gpus(node=node.pk))


@operator_page("node")
def show_node(request: OperatorRequest, pk: str) -> Any:
    """Show a node and the leases on it."""
    found = find_node(pk)
    its = fleet_gpus.load_gpus(node=pk)
    held = {s.lease: s for gpu in its for s in gpu.slices}
    ordered = sorted(held.values(), key=lambda s: (s.ends_at is None, s.ends_at, s.lease))
    lists, changes = read_lists(request, NODE_LEASE_LIST, CHANGE_LIST), inventory_history.changes_of(found)
    if wants_csv(request):
        return lists.csv((NODE_LEASE_LIST, lambda: ordered), (CHANGE_LIST, lambda: changes))
    context = {
        "node": found,
        "row": NodeRow(its) if its else None,
        "map": gpu_map.draw_map(its, "state"),
        "held": ordered,
        "listing": lists.read(NODE_LEASE_LIST, ordered, most=API_PAGE_SIZE),
        "tenants": len({s.tenant for s in held.values()}),
        "changes": lists.read(CHANGE_LIST, changes, most=inventory_history.MAX_ROWS),
        "simulated": found.cluster.provisioner == "simulated",
        "calls": [
            operator_api_call(
                _("Leases on this node"), "ops/allocations", node=found.pk, held="true", limit=API_PAGE_SIZE
            ),
            operator_api_call(_("This node"), f"nodes/{found.pk}"),
        ],
    }
    return render(request, "operators/fleet/node.html", context)


def describe_affected(node: Node) -> tuple[str, int]:
    """Describe who is on a node, and return the number of leases."""
    its = load_node_row(node)
    tenants = sorted({s.tenant_name for gpu in its.gpus for s in gpu.slices})
    if not its.leases:
        return _("No leases run on this node."), 0
    names = ", ".join(tenants[:4]) + (
        _(" and {tenants} more").format(tenants=len(tenants) - 4) if len(tenants) > 4 else ""
    )
    sentence = ngettext(
        "{n} lease is on this node now, of {names}.", "{n} leases are on this node now, of {names}.", its.leases
    )
    return sentence.format(n=its.leases, names=names), its.leases


def confirm_node_state(
    request: OperatorRequest, pk: str, state: NodeState, title: str, verb: str, *lines: str
) -> HttpResponse:
    """Ask for confirmation, then set a node's state."""
    found = find_node(pk)
    where = f"{found.cluster.name} / {found.name}"
    sentence = describe_affected(found)[0]

    def act(why: str) -> str:
        reason = eviction.clean_reason(why)
        hardware.set_node_state(found, state, reason=reason, actor=request.actor, now=request.now)
        return _("{where} is {label_lower}.").format(where=where, label_lower=state.label.lower())

    step = Confirmation(
        title=f"{title} {where}?",
        verb=f"{verb} {found.name}",
        back=reverse("ops-node", args=[pk]),
        lines=(*lines, sentence),
        danger=state is NodeState.LOST,
        hint=_("Recorded in the node's events and in the audit log."),
    )
    return confirm_action(request, step, act)


@operator_page("node.cordon", methods=SAFE_OR_POST)
def cordon_node(request: OperatorRequest, pk: str) -> HttpResponse:
    """Cordon a node: nothing new is placed on it."""
    effect = _("No new leases are placed here. Running leases continue until they end.")
    return confirm_node_state(request, pk, NodeState.CORDONED, _("Cordon"), _("Cordon"), effect)


@operator_page("node.drain", methods=SAFE_OR_POST)
def drain_node(request: OperatorRequest, pk: str) -> HttpResponse:
    """Drain a node: nothing new is placed on it, and it empties."""
    effect = _("No new leases are placed here. The control room shows when the node is empty.")
    more = _("Running leases continue until they end. You can release them on the node's page after the notice period.")
    return confirm_node_state(request, pk, NodeState.DRAINING, _("Drain"), _("Drain"), effect, more)


@operator_page("node.return", methods=SAFE_OR_POST)
def return_node(request: OperatorRequest, pk: str) -> HttpResponse:
    """Return a node to service."""
    effect = _("Healthy GPUs are available immediately, and queued leases are placed.")
    return confirm_node_state(request, pk, NodeState.READY, _("Return"), _("Return"), effect)


@operator_page("node.mark_lost", methods=SAFE_OR_POST)
def mark_node_lost(request: OperatorRequest, pk: str) -> HttpResponse:
    """Mark a simulated node lost, to test what happens to its leases."""
    found = find_node(pk)
    if found.cluster.provisioner != "simulated":
        raise NotSimulated(
            _("{found_name} is a physical node of {cluster_name}. It counts as lost when its heartbeats stop.").format(
                found_name=found.name, cluster_name=found.cluster.name
            ),
            fix=_("Cordon or drain it instead."),
        )
    effect = _("Its pods stop responding. Leases end as device lost after 30 s, charged up to the last heartbeat.")
    return confirm_node_state(request, pk, NodeState.LOST, _("Simulate loss of"), _("Simulate loss of"), effect)


@operator_page("node.release_all", methods=SAFE_OR_POST)
def release_node_leases(request: OperatorRequest, pk: str) -> HttpResponse:
    """Release every lease that holds a slice on a node."""
    found = find_node(pk)
    where = f"{found.cluster.name} / {found.name}"
    sentence, count = describe_affected(found)

    def act(why: str) -> str:
        ended = eviction.evict_node_leases(found, why=why, actor=request.actor, now=request.now)
        text = ngettext("{n} lease released on {where}.", "{n} leases released on {where}.", len(ended))
        return text.format(n=len(ended), where=where)

    step = Confirmation(
        title=_("Release everything on {where}?").format(where=where),
        verb=ngettext("Release {n} lease", "Release {n} leases", count).format(n=count),
        back=reverse("ops-node", args=[pk]),
        lines=(sentence, _("Billing stops immediately. Each tenant sees the reason on the lease.")),
        danger=True,
        hint=_("Visible to tenants: describe what happens and until when."),
    )
    return confirm_action(request, step, act)
