"""Objects of a project before its first lease.

A namespace with network policies and quotas, and a service account without rights.
"""

from collections.abc import Collection
from ipaddress import IPv4Network, IPv6Address

from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.drivers.base import SliceDriver
from broker.provisioners.kubernetes.render.pod import SERVICE_ACCOUNT
from broker.provisioners.kubernetes.render.spec import Manifest, ProjectSpec

# Blocked egress of tenants' pods: the cluster, its nodes, cloud metadata, other private networks.
PRIVATE_NETWORKS = ("10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16")
# The same networks by NAT64, and the whole prefix for local use.
NAT64 = 0x64_FF9B << 96
PRIVATE_NETWORKS_V6 = (
    "::1/128",
    "64:ff9b:1::/48",
    "fc00::/7",
    "fe80::/10",
    *(
        f"{IPv6Address(NAT64 | int(block.network_address))}/{96 + block.prefixlen}"
        for block in map(IPv4Network, PRIVATE_NETWORKS)
    ),
)
DNS_PORT = 53


def project_objects(
    project: ProjectSpec, driver: SliceDriver, *, allowed_namespaces: Collection[str] = ()
) -> list[Manifest]:
    """Return a project's objects in the order of application.

    `allowed_namespaces` are the namespaces from which people reach leases.
    """
    let_in = [{"from": [_namespace_peer(each) for each in allowed_namespaces]}] if allowed_namespaces else []
    found = [
        _manifest("v1", "ServiceAccount", SERVICE_ACCOUNT, automountServiceAccountToken=False),
        _manifest("v1", "ResourceQuota", "gpub-hard", spec={"hard": _quota_lines(project, driver)}),
        _manifest("v1", "LimitRange", "gpub-defaults", spec={"limits": [_default_limits()]}),
        _network_policy("gpub-deny", {"policyTypes": ["Egress", "Ingress"]}),
        _network_policy("gpub-egress", {"egress": [_dns_egress(), _internet_egress()], "policyTypes": ["Egress"]}),
        _network_policy("gpub-ingress", {"ingress": let_in, "policyTypes": ["Ingress"]}),
    ]
    for each in found:
        each["metadata"]["namespace"] = names.namespace_name(project.project_id, project.slug)
        each["metadata"]["labels"] = labels.project_labels(project)
    return [_namespace(project), *found]


def _namespace(project: ProjectSpec) -> Manifest:
    standard = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("audit", "enforce", "warn")}
    name = names.namespace_name(project.project_id, project.slug)
    marks = {**labels.project_labels(project), **standard}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"labels": marks, "name": name}}


def _quota_lines(project: ProjectSpec, driver: SliceDriver) -> dict[str, str]:
    most = project.ceilings
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
        **driver.quota_limits(most),
    }
    return dict(sorted(lines.items()))


def _default_limits() -> Manifest:
    """Return default limits: the quota refuses containers that state none."""
    little = {"cpu": "1", "ephemeral-storage": "1Gi", "memory": "1Gi"}
    return {"default": little, "defaultRequest": little, "type": "Container"}


def _dns_egress() -> Manifest:
    ports = [{"port": DNS_PORT, "protocol": protocol} for protocol in ("TCP", "UDP")]
    return {"ports": ports, "to": [_namespace_peer("kube-system")]}


def _internet_egress() -> Manifest:
    blocks = (("0.0.0.0/0", PRIVATE_NETWORKS), ("::/0", PRIVATE_NETWORKS_V6))
    return {"to": [{"ipBlock": {"cidr": every, "except": list(but)}} for every, but in blocks]}


def _namespace_peer(namespace: str) -> Manifest:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}


def _network_policy(name: str, spec: Manifest) -> Manifest:
    return _manifest("networking.k8s.io/v1", "NetworkPolicy", name, spec={"podSelector": {}, **spec})


def _manifest(version: str, kind: str, name: str, **rest: object) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **rest}
