"""What a pod holds of its node, and whether it belongs to the node."""

from collections.abc import Iterable
from fractions import Fraction

import msgspec

from broker.provisioners.kubernetes.client.objects import ApiStruct, FullObjectMeta
from broker.provisioners.kubernetes.client.quantities import ZERO, parse_quantity

# Kinds whose controlled pods run as long as their node: the kubelet mirrors its static pods with itself as owner.
NODE_OWNERS = ("DaemonSet", "Node")
POD_LEVEL_RESOURCES = ("cpu", "memory")  # and huge pages: what a pod may request as a whole (KEP-2837)
HUGE_PAGES = "hugepages-"
Amounts = dict[str, Fraction]  # by resource name


class ResourceRequests(ApiStruct):
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}


class ContainerRequests(ApiStruct):
    resources: ResourceRequests = msgspec.field(default_factory=ResourceRequests)
    restart_policy: str = ""  # Always: a sidecar among the init containers


class PodRequestsSpec(ApiStruct):
    """The part of a pod that says where it runs and what it requests."""

    node_name: str = ""
    containers: list[ContainerRequests] = []
    init_containers: list[ContainerRequests] = []
    overhead: dict[str, str] = {}
    resources: ResourceRequests = msgspec.field(default_factory=ResourceRequests)


def pod_requests(spec: PodRequestsSpec) -> Amounts:
    """Return what a pod holds of its node, as the scheduler counts it.

    An init container runs beside the sidecars that are listed before it (KEP-753).
    """
    total = _sum_requests(spec.containers)
    sidecars: Amounts = {}
    most_at_start: Amounts = {}
    for each in spec.init_containers:
        wanted = _sum_requests([each])
        if each.restart_policy == "Always":
            add_amounts(sidecars, wanted)
            wanted = {}
        add_amounts(wanted, sidecars)
        raise_amounts(most_at_start, wanted)
    add_amounts(total, sidecars)
    raise_amounts(total, most_at_start)
    total |= {name: n for name, n in _requested(spec.resources).items() if _is_pod_level(name)}
    add_amounts(total, {name: parse_quantity(text) for name, text in spec.overhead.items()})
    return total


def node_owner(meta: FullObjectMeta) -> str:
    """Return a pod's daemon set, or the name of a static pod.

    Empty for any other pod.
    """
    for owner in meta.owner_references:
        if owner.controller and owner.kind in NODE_OWNERS:
            name = owner.name if owner.kind == "DaemonSet" else meta.name
            return f"{meta.namespace}/{name}"
    return ""


def add_amounts(total: Amounts, more: Amounts) -> None:
    """Add amounts to a total."""
    for name, amount in more.items():
        total[name] = total.get(name, ZERO) + amount


def raise_amounts(most: Amounts, others: Amounts) -> None:
    """Raise amounts to those of others where these are larger."""
    for name, amount in others.items():
        most[name] = max(most.get(name, ZERO), amount)


def _sum_requests(containers: Iterable[ContainerRequests]) -> Amounts:
    total: Amounts = {}
    for each in containers:
        add_amounts(total, _requested(each.resources))
    return total


def _requested(resources: ResourceRequests) -> Amounts:
    return {name: parse_quantity(text) for name, text in {**resources.limits, **resources.requests}.items()}


def _is_pod_level(name: str) -> bool:
    return name in POD_LEVEL_RESOURCES or name.startswith(HUGE_PAGES)
