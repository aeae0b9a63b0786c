"""How the people of a lease reach what runs on it, once it runs."""

from dataclasses import dataclass

from broker.domain.states import LeaseState
from broker.domain.workloads import SSH, TEMPLATES, VLLM
from broker.models import Cluster, Lease
from broker.provisioners.kubernetes import names
from broker.services.leases.orders import access_token

USER = "gpubroker"


@dataclass(frozen=True)
class Connection:
    """One way in: a line for a shell, or an address for a browser with the secret that opens it."""

    label: str
    line: str
    is_link: bool = False
    secret: str = ""


def connections(lease: Lease) -> list[Connection]:
    """Return the ways into an active lease; none where its cluster lets nobody in, or nothing listens."""
    template = TEMPLATES.get(lease.workload)
    if lease.state != LeaseState.ACTIVE or template is None or not template.ports:
        return []
    places = lease.allocations.filter(generation=lease.generation, released_at=None)
    held = places.select_related("gpu__node__cluster").first()
    if held is None:
        return []
    cluster = held.gpu.node.cluster
    if template is SSH:
        return [_ssh(lease, cluster)] if cluster.bastion and lease.ssh_keys else []
    if not cluster.domain or not cluster.door:
        return []
    address = f"https://{names.tail(lease.pk)}.{cluster.domain}"
    secret = access_token(lease.pk)
    if template is VLLM:
        call = f"curl {address}/v1/models -H 'Authorization: Bearer {secret}'"
        return [Connection("Endpoint", f"{address}/v1", secret=secret), Connection("Try it", call)]
    return [Connection(template.label, f"{address}/", is_link=True, secret=secret)]


def _ssh(lease: Lease, cluster: Cluster) -> Connection:
    """Jump over the bastion, which alone may speak to the box, by the name the box has inside."""
    inside = f"{names.anchor(lease.pk, lease.generation)}.{names.namespace(lease.project_id)}.svc"
    return Connection("SSH", f"ssh -J {USER}@{cluster.bastion} {USER}@{inside}")
