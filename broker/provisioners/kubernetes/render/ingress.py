"""Services, routes and the peer network policy of a lease.

They let people reach a lease and its pods reach each other.
"""

from broker.domain.workloads.templates import ContainerProgram
from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.render.spec import LeaseSpec, Manifest, RouteSpec

SSH_PORT, HTTP_PORT = 22, 80


def ingress_objects(lease: LeaseSpec, program: ContainerProgram) -> list[Manifest]:
    """Return the services and routes of a lease; none has an external address."""
    found = []
    if program.template.ports:
        found.append(_service(lease, program))
        if lease.route and any(port.is_http for port in program.template.ports):
            found.append(_route(lease, lease.route))
    if len(lease.nodes) > 1:
        found += [_peers_service(lease), _peers_policy(lease)]
    return found


def host_name_of(lease: LeaseSpec, route: RouteSpec) -> str:
    """Return the host name of the lease's page; the same for every generation."""
    return f"{names.id_suffix(lease.lease_id)}.{route.domain}"


def _pod_labels(lease: LeaseSpec) -> dict[str, str]:
    return {labels.LEASE: lease.lease_id, labels.GENERATION: str(lease.generation)}


def _service(lease: LeaseSpec, program: ContainerProgram) -> Manifest:
    ports = [
        {
            "name": port.name,
            "port": HTTP_PORT if port.is_http else SSH_PORT,
            "protocol": "TCP",
            "targetPort": port.number,
        }
        for port in program.template.ports
    ]
    first = {**_pod_labels(lease), labels.RANK: "0"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": names.anchor_name(lease.lease_id, lease.generation)},
        "spec": {"ports": ports, "selector": first, "type": "ClusterIP"},
    }


def _route(lease: LeaseSpec, route: RouteSpec) -> Manifest:
    name = names.anchor_name(lease.lease_id, lease.generation)
    if route.kind == "gateway":
        backend = {"name": name, "port": HTTP_PORT}
        return {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata": {"name": name},
            "spec": {
                "hostnames": [host_name_of(lease, route)],
                "parentRefs": [{"name": route.name, "namespace": route.namespace}],
                "rules": [{"backendRefs": [backend]}],
            },
        }
    path = {"backend": {"service": {"name": name, "port": {"number": HTTP_PORT}}}, "path": "/", "pathType": "Prefix"}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name},
        "spec": {
            "ingressClassName": route.name,
            "rules": [{"host": host_name_of(lease, route), "http": {"paths": [path]}}],
        },
    }


def _peers_service(lease: LeaseSpec) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": names.peers_name(lease.lease_id, lease.generation)},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": _pod_labels(lease)},
    }


def _peers_policy(lease: LeaseSpec) -> Manifest:
    peers = [{"podSelector": {"matchLabels": _pod_labels(lease)}}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": names.peers_name(lease.lease_id, lease.generation)},
        "spec": {
            "egress": [{"to": peers}],
            "ingress": [{"from": peers}],
            "podSelector": {"matchLabels": _pod_labels(lease)},
            "policyTypes": ["Egress", "Ingress"],
        },
    }
