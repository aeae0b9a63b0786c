"""Look up our objects in a cluster.

What does not carry our labels is not ours, whatever its name.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from broker.provisioners.base import parse_spec_name, spec_name
from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.client import objects
from broker.provisioners.kubernetes.client.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    EVENT,
    JOB,
    NODE,
    NODE_LEASE,
    POD,
    STATEFUL_SET,
    Kind,
    ObjectRef,
)
from broker.provisioners.kubernetes.client.objects import ClusterNode, ClusterObjectHeader, ObservedPod, decode
from broker.provisioners.kubernetes.client.transport import KubernetesApi
from broker.provisioners.kubernetes.render.lease import namespace_of
from broker.provisioners.kubernetes.render.spec import LeaseSpec

HEARTBEAT_NAMESPACE = "kube-node-lease"
CONTROLLERS = (STATEFUL_SET, JOB, DEPLOYMENT)


@dataclass(frozen=True)
class LeaseObjects:
    """The objects of one lease generation; a foreign anchor counts as none."""

    ref: ObjectRef
    anchor: ClusterObjectHeader | None
    pods: tuple[ObservedPod, ...]

    @property
    def ends(self) -> bool:
        return self.anchor is not None and self.anchor.metadata.deletion_timestamp is not None

    @property
    def is_gone(self) -> bool:
        return self.anchor is None and not self.pods


def anchor_ref(spec: LeaseSpec) -> ObjectRef:
    return ObjectRef(CONFIG_MAP, names.anchor_name(spec.lease_id, spec.generation), namespace_of(spec))


def find_lease_objects(api: KubernetesApi, spec: LeaseSpec) -> LeaseObjects:
    """Look up the anchor and the pods of one generation."""
    ref = anchor_ref(spec)
    body = api.get(ref)
    anchor = decode(body, ClusterObjectHeader) if body else None
    ours = anchor is not None and belongs_to_lease(anchor, spec)
    pods, _ = api.list_all(POD, namespace=ref.namespace, labels=lease_selector(spec.lease_id, spec.generation))
    return LeaseObjects(ref, anchor if ours else None, tuple(decode(each, ObservedPod) for each in pods))


def belongs_to_lease(thing: ClusterObjectHeader, spec: LeaseSpec) -> bool:
    """Tell whether an object carries the labels of this generation of this lease."""
    marks = thing.metadata.labels
    return labels.labels_match(marks, labels.lease_labels(spec))


def lease_selector(lease_id: str, generation: int | str) -> str:
    return f"{labels.OURS_SELECTOR},{labels.LEASE}={lease_id},{labels.GENERATION}={generation}"


def read_nodes(api: KubernetesApi, hosts: Iterable[str]) -> dict[str, ClusterNode]:
    """Read some nodes; those no longer in the cluster are left out."""
    bodies = {host: api.get(ObjectRef(NODE, host)) for host in hosts}
    return {host: decode(body, ClusterNode) for host, body in bodies.items() if body}


def read_heartbeats(api: KubernetesApi, hosts: Iterable[str]) -> dict[str, datetime]:
    """Return the last heartbeat of some nodes.

    Their leases are renewed every few seconds, unlike their status.
    """
    bodies = (api.get(ObjectRef(NODE_LEASE, host, HEARTBEAT_NAMESPACE)) for host in hosts)
    leases = [decode(body, objects.NodeLease) for body in bodies if body]
    return {each.metadata.name: each.spec.renew_time for each in leases if each.spec.renew_time}


def pod_creation_error(api: KubernetesApi, spec: LeaseSpec) -> str:
    """Return a controller's last error in creating a pod; empty if none."""
    events, _ = api.list_all(EVENT, namespace=namespace_of(spec), fields="reason=FailedCreate")
    name = names.anchor_name(spec.lease_id, spec.generation)
    mine = [event for event in (decode(each, objects.ClusterEvent) for each in events) if event.is_about(name)]
    return max(mine, key=lambda event: event.sort_time).message if mine else ""


def find_all_leases(
    api: KubernetesApi, installation: str = "", spec_name: str = ""
) -> dict[str, list[tuple[Kind, ClusterObjectHeader]]]:
    """Return everything that holds capacity for leases, by spec name.

    Without `installation` it is that of any installation; with `spec_name`, only that of one spec. Anchors
    own the rest; a controller or pod is listed too, in case its anchor was deleted without it.
    """
    there: dict[str, list[tuple[Kind, ClusterObjectHeader]]] = {}
    ours = lease_selector(*parse_spec_name(spec_name)) if spec_name else labels.OURS_SELECTOR
    ours = f"{ours},{labels.INSTALLATION}={installation}" if installation else ours
    for kind, marks in ((CONFIG_MAP, f"{ours},{labels.ROLE}={labels.ANCHOR_ROLE}"), (POD, ours)):
        items, _ = api.list_all(kind, labels=marks, metadata_only=True)
        for item in items:
            thing = decode(item, ClusterObjectHeader)
            if name := spec_name_of(thing):
                there.setdefault(name, []).append((kind, thing))
    return there


def spec_name_of(
    thing: ClusterObjectHeader
    | ObservedPod
    | ClusterNode
    | objects.ResourceSlice
    | objects.ObservedQuota
    | objects.ResourceClaim,
) -> str:
    """Return the spec name in an object's labels; empty if not one of ours."""
    lease_id, generation = (
        thing.metadata.labels.get(labels.LEASE, ""),
        thing.metadata.labels.get(labels.GENERATION, ""),
    )
    if not generation.isdecimal() or not names.ID.fullmatch(lease_id):
        return ""
    return spec_name(lease_id, int(generation))
