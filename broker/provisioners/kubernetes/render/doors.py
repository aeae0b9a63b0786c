"""How people and the pods of one lease reach it: services, routes, and the walls' one opening among its own pods."""

from broker.domain.workloads import Program
from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.spec import LeaseSpec, Manifest, RouteSpec

SSH_PORT, HTTP_PORT = 22, 80


def doors(lease: LeaseSpec, program: Program) -> list[Manifest]:
    """Return the services and routes of a lease; nothing of it has an address of its own outside."""
    found = []
    if program.template.ports:
        found.append(_service(lease, program))
        if lease.route and any(port.is_http for port in program.template.ports):
            found.append(_route(lease, lease.route))
    if len(lease.nodes) > 1:
        found += [_peers(lease), _among_peers(lease)]
    return found


def host(lease: LeaseSpec, route: RouteSpec) -> str:
    """Return the name under which the lease's page is found; the same for every generation."""
    return f"{names.tail(lease.lease_id)}.{route.domain}"


def _pods(lease: LeaseSpec) -> dict[str, str]:
    return {labels.LEASE: lease.lease_id, labels.GENERATION: str(lease.generation)}


def _service(lease: LeaseSpec, program: Program) -> Manifest:
    ports = [
        {
            "name": port.name,
            "port": HTTP_PORT if port.is_http else SSH_PORT,
            "protocol": "TCP",
            "targetPort": port.number,
        }
        for port in program.template.ports
    ]
    first = {**_pods(lease), labels.RANK: "0"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": names.anchor(lease.lease_id, lease.generation)},
        "spec": {"ports": ports, "selector": first, "type": "ClusterIP"},
    }


def _route(lease: LeaseSpec, route: RouteSpec) -> Manifest:
    name = names.anchor(lease.lease_id, lease.generation)
    if route.kind == "gateway":
        backend = {"name": name, "port": HTTP_PORT}
        return {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "HTTPRoute",
            "metadata": {"name": name},
            "spec": {
                "hostnames": [host(lease, route)],
                "parentRefs": [{"name": route.name, "namespace": route.namespace}],
                "rules": [{"backendRefs": [backend]}],
            },
        }
    path = {
        "backend": {"service": {"name": name, "port": {"number": HTTP_PORT}}},
        "path": "/",
        "pathType": "Prefix",
    }
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name},
        "spec": {
            "ingressClassName": route.name,
            "rules": [{"host": host(lease, route), "http": {"paths": [path]}}],
        },
    }


def _peers(lease: LeaseSpec) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": names.peers(lease.lease_id, lease.generation)},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": _pods(lease)},
    }


def _among_peers(lease: LeaseSpec) -> Manifest:
    peers = [{"podSelector": {"matchLabels": _pods(lease)}}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": names.peers(lease.lease_id, lease.generation)},
        "spec": {
            "egress": [{"to": peers}],
            "ingress": [{"from": peers}],
            "podSelector": {"matchLabels": _pods(lease)},
            "policyTypes": ["Egress", "Ingress"],
        },
    }
