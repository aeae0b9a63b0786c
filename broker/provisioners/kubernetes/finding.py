"""What is there of ours: the reads behind every step. What does not carry our marks is not ours, whatever its name."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from broker.provisioners.base import order_name, order_parts
from broker.provisioners.kubernetes import labels, names, objects
from broker.provisioners.kubernetes.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    EVENT,
    JOB,
    NODE,
    NODE_LEASE,
    POD,
    STATEFUL_SET,
    Kind,
    Ref,
)
from broker.provisioners.kubernetes.objects import Node, Pod, Thing, read
from broker.provisioners.kubernetes.render.lease import namespace_of
from broker.provisioners.kubernetes.spec import LeaseSpec
from broker.provisioners.kubernetes.transport import Api

HEARTBEATS = "kube-node-lease"
CONTROLLERS = (STATEFUL_SET, JOB, DEPLOYMENT)


@dataclass(frozen=True)
class Found:
    """One generation of a lease in the cluster; an anchor that is not ours is none."""

    ref: Ref
    anchor: Thing | None
    pods: tuple[Pod, ...]
    in_the_way: bool = False  # something that is not ours has its name

    @property
    def ends(self) -> bool:
        return self.anchor is not None and self.anchor.metadata.deletion_timestamp is not None

    @property
    def is_gone(self) -> bool:
        return self.anchor is None and not self.pods


def anchor_ref(spec: LeaseSpec) -> Ref:
    return Ref(CONFIG_MAP, names.anchor(spec.lease_id, spec.generation), namespace_of(spec))


def of_order(api: Api, spec: LeaseSpec) -> Found:
    """Look for the anchor and the pods of one generation."""
    ref = anchor_ref(spec)
    body = api.get(ref)
    anchor = read(body, Thing) if body else None
    ours = anchor is not None and is_ours(anchor, spec)
    pods, _ = api.list_all(POD, namespace=ref.namespace, labels=selector(spec.lease_id, spec.generation))
    return Found(
        ref, anchor if ours else None, tuple(read(each, Pod) for each in pods), bool(body) and not ours
    )


def is_ours(thing: Thing, spec: LeaseSpec) -> bool:
    """Tell whether an object carries the marks of this generation of this lease."""
    marks = thing.metadata.labels
    return labels.fit(marks, labels.of_lease(spec))


def selector(lease_id: str, generation: int | str) -> str:
    return f"{labels.OURS},{labels.LEASE}={lease_id},{labels.GENERATION}={generation}"


def of_nodes(api: Api, hosts: Iterable[str]) -> dict[str, Node]:
    """Read some nodes; one that the cluster no longer has is missing from the answer."""
    bodies = {host: api.get(Ref(NODE, host)) for host in hosts}
    return {host: read(body, Node) for host, body in bodies.items() if body}


def heartbeats(api: Api, hosts: Iterable[str]) -> dict[str, datetime]:
    """Read when some nodes were heard last: their leases are renewed every few seconds, their status is not."""
    bodies = (api.get(Ref(NODE_LEASE, host, HEARTBEATS)) for host in hosts)
    leases = [read(body, objects.Lease) for body in bodies if body]
    return {each.metadata.name: each.spec.renew_time for each in leases if each.spec.renew_time}


def why_no_pod(api: Api, spec: LeaseSpec) -> str:
    """Return what a controller last said about why it cannot make its pod; empty when it said nothing."""
    events, _ = api.list_all(EVENT, namespace=namespace_of(spec), fields="reason=FailedCreate")
    name = names.anchor(spec.lease_id, spec.generation)
    mine = [said for said in (read(each, objects.Said) for each in events) if said.is_about(name)]
    return max(mine, key=lambda said: said.order).message if mine else ""


def all_of_ours(api: Api, installation: str = "", order: str = "") -> dict[str, list[tuple[Kind, Thing]]]:
    """Return everything of an installation that holds places for leases, whoever's, by the name of its order.

    With `order`, only what is of that one. Anchors hold the rest; a controller or pod is listed too, in case its anchor
    went without it.
    """
    there: dict[str, list[tuple[Kind, Thing]]] = {}
    ours = selector(*order_parts(order)) if order else labels.OURS
    ours = f"{ours},{labels.INSTALLATION}={installation}" if installation else ours
    for kind, marks in (
        (CONFIG_MAP, f"{ours},{labels.ROLE}={labels.ANCHOR_ROLE}"),
        (POD, ours),
    ):
        items, _ = api.list_all(kind, labels=marks, metadata_only=True)
        for item in items:
            thing = read(item, Thing)
            if name := order_of(thing):
                there.setdefault(name, []).append((kind, thing))
    return there


def order_of(thing: Thing | Pod | Node | objects.ResourceSlice | objects.Quota | objects.Claim) -> str:
    """Return the name of the order a thing says it belongs to; empty when it says nothing that we would."""
    lease_id, generation = (
        thing.metadata.labels.get(labels.LEASE, ""),
        thing.metadata.labels.get(labels.GENERATION, ""),
    )
    if not generation.isdecimal() or not names.ID.fullmatch(lease_id):
        return ""
    return order_name(lease_id, int(generation))
