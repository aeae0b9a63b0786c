"""One node: its cards, who is on it, and taking it out of service in steps."""

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from broker.models import Node, NodeState
from broker.portal import maps
from broker.portal.clusters import NodeRow
from broker.portal.operations import ASKS, OpsRequest, Step, ask, page
from broker.services import inventory
from broker.services.fleet import cards, history
from broker.services.leases import evicting
from tenants.portal.acts import MOST, ops_call
from tenants.services.refusals import Missing, Refused
from tenants.services.walls import as_staff


class NotSimulated(Refused):
    code, status, title = "not-simulated", 409, "Only a simulated node can be lost on request"


def node_or_missing(pk: str) -> Node:
    node = Node.objects.select_related("cluster").filter(pk=pk).first()
    if node is None:
        raise Missing(f"There is no node {pk!r}.", fix="Go to Clusters and nodes to see what there is.")
    return node


def row_of(node: Node) -> NodeRow:
    """Load a node's cards with what lies on them."""
    with as_staff():
        return NodeRow(cards.load(node=node.pk))


@require_safe
@page("node")
def node(request: OpsRequest, pk: str) -> HttpResponse:
    """Show a node and the leases that would feel its absence."""
    found = node_or_missing(pk)
    its = cards.load(node=pk)
    held = {s.lease: s for card in its for s in card.slices}
    told = {
        "node": found,
        "row": NodeRow(its) if its else None,
        "map": maps.draw(its, "state"),
        "held": sorted(held.values(), key=lambda s: (s.ends_at is None, s.ends_at, s.lease)),
        "tenants": len({s.tenant for s in held.values()}),
        "changes": history.changes_of(found),
        "simulated": found.cluster.provisioner == "simulated",
        "calls": [
            ops_call("Leases on it", "ops/allocations", node=found.pk, held="true", limit=MOST),
            ops_call("This node", f"nodes/{found.pk}"),
        ],
    }
    return render(request, "ops/node.html", told)


def affected(node: Node) -> tuple[str, int]:
    """Say who is on a node now, in one sentence; and how many leases."""
    its = row_of(node)
    tenants = sorted({s.tenant_name for card in its.cards for s in card.slices})
    if not its.leases:
        return "No lease is on it now.", 0
    names = ", ".join(tenants[:4]) + (f" and {len(tenants) - 4} more" if len(tenants) > 4 else "")
    return f"{its.leases} lease{'s are' if its.leases > 1 else ' is'} on it now, of {names}.", its.leases


def change(
    request: OpsRequest, pk: str, state: NodeState, title: str, verb: str, *lines: str
) -> HttpResponse:
    """Ask about another state of a node, then set it."""
    found = node_or_missing(pk)
    where = f"{found.cluster.name} / {found.name}"
    sentence, _ = affected(found)

    def act(why: str) -> str:
        reason = evicting.reason(why)
        inventory.set_node_state(found, state, reason=reason, actor=request.actor, now=request.now)
        return f"{where} is {state.label.lower()}."

    step = Step(
        title=f"{title} {where}?",
        verb=f"{verb} {found.name}",
        back=reverse("ops-node", args=[pk]),
        lines=(*lines, sentence),
        danger=state is NodeState.LOST,
        hint="Stands in the node's history and in the audit trail.",
    )
    return ask(request, step, act)


@ASKS
@page("node.cordon")
def cordon(request: OpsRequest, pk: str) -> HttpResponse:
    """Place nothing new on a node."""
    told = "Nothing new is placed here; what runs goes on until its own end."
    return change(request, pk, NodeState.CORDONED, "Cordon", "Cordon", told)


@ASKS
@page("node.drain")
def drain(request: OpsRequest, pk: str) -> HttpResponse:
    """Place nothing new on a node and wait for it to be empty."""
    told = "Nothing new is placed here, and the control room tells when it is empty."
    more = "Leases go on until their own end; release them on the node's page when the notice is over."
    return change(request, pk, NodeState.DRAINING, "Drain", "Drain", told, more)


@ASKS
@page("node.ready")
def ready(request: OpsRequest, pk: str) -> HttpResponse:
    """Sell a node again."""
    told = "Its healthy cards are sold again at once, and its pools' queues are served."
    return change(request, pk, NodeState.READY, "Bring back", "Bring back", told)


@ASKS
@page("node.lose")
def lose(request: OpsRequest, pk: str) -> HttpResponse:
    """Let a simulated node fall silent, to see what becomes of its leases."""
    found = node_or_missing(pk)
    if found.cluster.provisioner != "simulated":
        raise NotSimulated(
            f"{found.name} is a machine of {found.cluster.name}; it is lost when it stops answering.",
            fix="Cordon or drain it instead.",
        )
    told = "Its pods stop answering. Leases end as device lost after 30 s, charged up to their last sign of life."
    return change(request, pk, NodeState.LOST, "Lose", "Lose", told)


@ASKS
@page("node.release_all")
def release_all(request: OpsRequest, pk: str) -> HttpResponse:
    """End every lease that holds a place on a node."""
    found = node_or_missing(pk)
    where = f"{found.cluster.name} / {found.name}"
    sentence, count = affected(found)

    def act(why: str) -> str:
        ended = evicting.evict_all(found, why=why, actor=request.actor, now=request.now)
        return f"{len(ended)} lease{'' if len(ended) == 1 else 's'} released on {where}."

    step = Step(
        title=f"Release everything on {where}?",
        verb=f"Release {count} lease{'' if count == 1 else 's'}",
        back=reverse("ops-node", args=[pk]),
        lines=(sentence, "Charging ends the moment you press; each tenant reads the reason on its lease."),
        danger=True,
        hint="Tenants read this sentence: say what happens and until when.",
    )
    return ask(request, step, act)
