"""Services, routes and the peer network policy of a lease.

They let people reach a lease and its pods reach each other.
"""

from collections.abc import Sequence

from broker.domain.workloads.templates import ContainerPort, ContainerProgram
from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.render.spec import LeaseSpec, Manifest, RouteSpec

SSH_PORT, HTTP_PORT = 22, 80


def ingress_objects(lease: LeaseSpec, program: ContainerProgram) -> list[Manifest]:
    """Return the services and routes of a lease; none has an external address."""
    found = []
    if program.template.ports:
        found.append(_service(lease, program))
        if lease.route:
            found += _routes(lease, lease.route, program.template.ports)
    if len(lease.nodes) > 1:
        found += [_peers_service(lease), _peers_policy(lease)]
    return found


def service_port(port: ContainerPort, ports: Sequence[ContainerPort]) -> int:
    """Return the number under which a lease's Service offers a port."""
    if port.name == "ssh":
        return SSH_PORT
    return HTTP_PORT if port == _first_http(ports) else port.number


def http_hosts(lease_id: str, ports: Sequence[ContainerPort], domain: str) -> dict[ContainerPort, str]:
    """Return the host name of each HTTP port, the same for every generation.

    All are one label below the domain, so that one wildcard certificate is valid for them.
    """
    first, name = _first_http(ports), names.id_suffix(lease_id)
    return {
        port: f"{name}.{domain}" if port == first else f"{name}-{port.name}.{domain}" for port in ports if port.is_http
    }


def _first_http(ports: Sequence[ContainerPort]) -> ContainerPort | None:
    return next((port for port in ports if port.is_http), None)


def _pod_labels(lease: LeaseSpec) -> dict[str, str]:
    return {labels.LEASE: lease.lease_id, labels.GENERATION: str(lease.generation)}


def _service(lease: LeaseSpec, program: ContainerProgram) -> Manifest:
    ports = [
        {
            "name": port.name,
            "port": service_port(port, program.template.ports),
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


def _routes(lease: LeaseSpec, route: RouteSpec, ports: Sequence[ContainerPort]) -> list[Manifest]:
    """Return what routes a host name to each HTTP port; none without one."""
    hosts = http_hosts(lease.lease_id, ports, route.domain)
    if route.kind == "gateway":
        return [_http_route(lease, route, host, port, ports) for port, host in hosts.items()]
    return [_ingress(lease, route, {host: service_port(port, ports) for port, host in hosts.items()})] if hosts else []


def _http_route(
    lease: LeaseSpec, route: RouteSpec, host: str, port: ContainerPort, ports: Sequence[ContainerPort]
) -> Manifest:
    """Return the HTTPRoute of one port."""
    anchor = names.anchor_name(lease.lease_id, lease.generation)
    own_name = anchor if port == _first_http(ports) else names.shorten_name(f"{anchor}-{port.name}", names.MAX_NAME)
    return {
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": {"name": own_name},
        "spec": {
            "hostnames": [host],
            "parentRefs": [{"name": route.name, "namespace": route.namespace}],
            "rules": [{"backendRefs": [{"name": anchor, "port": service_port(port, ports)}]}],
        },
    }


def _ingress(lease: LeaseSpec, route: RouteSpec, hosts: dict[str, int]) -> Manifest:
    name = names.anchor_name(lease.lease_id, lease.generation)
    rules = [
        {
            "host": host,
            "http": {
                "paths": [
                    {
                        "backend": {"service": {"name": name, "port": {"number": number}}},
                        "path": "/",
                        "pathType": "Prefix",
                    }
                ]
            },
        }
        for host, number in hosts.items()
    ]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": name},
        "spec": {"ingressClassName": route.name, "rules": rules},
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
