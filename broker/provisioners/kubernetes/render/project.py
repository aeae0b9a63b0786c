"""What a project has in a cluster before its first lease: a namespace with walls, ceilings, a powerless account."""

from collections.abc import Collection
from ipaddress import IPv4Network, IPv6Address

from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.render.pod import SERVICE_ACCOUNT
from broker.provisioners.kubernetes.spec import Manifest, ProjectSpec

# Where a tenant's pods never call: the cluster and its machines, the cloud's metadata, other private networks.
NOT_THE_INTERNET = (
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
)
# And by NAT64: the same places as IPv6 writes them, and all of the prefix that is for local use.
NAT64 = 0x64_FF9B << 96
NOT_THE_INTERNET_V6 = (
    "::1/128",
    "64:ff9b:1::/48",
    "fc00::/7",
    "fe80::/10",
    *(
        f"{IPv6Address(NAT64 | int(block.network_address))}/{96 + block.prefixlen}"
        for block in map(IPv4Network, NOT_THE_INTERNET)
    ),
)
DNS_PORT = 53


def project_objects(
    project: ProjectSpec, driver: SliceDriver, *, entrances: Collection[str] = ()
) -> list[Manifest]:
    """Return a project's objects in the order they are applied; `entrances` are the namespaces people come in by."""
    let_in = [{"from": [_in(each) for each in entrances]}] if entrances else []
    found = [
        _named("v1", "ServiceAccount", SERVICE_ACCOUNT, automountServiceAccountToken=False),
        _named("v1", "ResourceQuota", "gpub-hard", spec={"hard": _ceilings(project, driver)}),
        _named("v1", "LimitRange", "gpub-defaults", spec={"limits": [_defaults()]}),
        _policy("gpub-deny", {"policyTypes": ["Egress", "Ingress"]}),
        _policy("gpub-egress", {"egress": [_to_dns(), _to_internet()], "policyTypes": ["Egress"]}),
        _policy("gpub-ingress", {"ingress": let_in, "policyTypes": ["Ingress"]}),
    ]
    for each in found:
        each["metadata"]["namespace"] = names.namespace(project.project_id, project.slug)
        each["metadata"]["labels"] = labels.of_project(project)
    return [_namespace(project), *found]


def _namespace(project: ProjectSpec) -> Manifest:
    standard = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("audit", "enforce", "warn")}
    name = names.namespace(project.project_id, project.slug)
    marks = {**labels.of_project(project), **standard}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"labels": marks, "name": name}}


def _ceilings(project: ProjectSpec, driver: SliceDriver) -> dict[str, str]:
    most = project.most
    machine = {
        "cpu": str(most.cpu),
        "memory": f"{most.memory_gib}Gi",
        "ephemeral-storage": f"{most.storage_gib}Gi",
        "storage": f"{most.storage_gib}Gi",
    }
    lines = {
        **{f"requests.{name}": amount for name, amount in machine.items()},
        "pods": str(most.pods),
        "count/jobs.batch": str(most.jobs),
        "services.loadbalancers": "0",
        "services.nodeports": "0",
        **driver.quota(most),
    }
    return dict(sorted(lines.items()))


def _defaults() -> Manifest:
    """Give a container that asks for nothing a little, for the quota refuses those that do not say."""
    little = {"cpu": "1", "ephemeral-storage": "1Gi", "memory": "1Gi"}
    return {"default": little, "defaultRequest": little, "type": "Container"}


def _to_dns() -> Manifest:
    ports = [{"port": DNS_PORT, "protocol": protocol} for protocol in ("TCP", "UDP")]
    return {"ports": ports, "to": [_in("kube-system")]}


def _to_internet() -> Manifest:
    blocks = (("0.0.0.0/0", NOT_THE_INTERNET), ("::/0", NOT_THE_INTERNET_V6))
    return {"to": [{"ipBlock": {"cidr": every, "except": list(but)}} for every, but in blocks]}


def _in(namespace: str) -> Manifest:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}


def _policy(name: str, spec: Manifest) -> Manifest:
    return _named("networking.k8s.io/v1", "NetworkPolicy", name, spec={"podSelector": {}, **spec})


def _named(version: str, kind: str, name: str, **rest: object) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **rest}
