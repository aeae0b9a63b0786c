"""Connection details of an active lease: SSH command, endpoint or web address."""

from dataclasses import dataclass

from broker.domain.lifecycle.states import LeaseState
from broker.domain.workloads.templates import SSH, TEMPLATES, VLLM
from broker.models import Cluster, Lease
from broker.provisioners.kubernetes import names
from broker.services.leases.provision_specs import access_token

SSH_USER = "gpubroker"


@dataclass(frozen=True)
class LeaseConnection:
    """One way to connect: a command line, or a URL with its access token."""

    label: str
    line: str
    is_link: bool = False
    secret: str = ""


def lease_connections_of(lease: Lease) -> list[LeaseConnection]:
    """Return how to connect to an active lease.

    Empty when its cluster has no ingress, or when nothing listens.
    """
    template = TEMPLATES.get(lease.workload)
    if lease.state != LeaseState.ACTIVE or template is None or not template.ports:
        return []
    places = lease.allocations.filter(generation=lease.generation, released_at=None)
    held = places.select_related("gpu__node__cluster").first()
    if held is None:
        return []
    cluster = held.gpu.node.cluster
    if template is SSH:
        return [_ssh_connection(lease, cluster)] if cluster.bastion and lease.ssh_keys else []
    if not cluster.domain or not cluster.ingress:
        return []
    address = f"https://{names.id_suffix(lease.pk)}.{cluster.domain}"
    secret = access_token(lease.pk)
    if template is VLLM:
        call = f"curl {address}/v1/models -H 'Authorization: Bearer {secret}'"
        return [LeaseConnection("Endpoint", f"{address}/v1", secret=secret), LeaseConnection("Try it", call)]
    return [LeaseConnection(template.label, f"{address}/", is_link=True, secret=secret)]


def _ssh_connection(lease: Lease, cluster: Cluster) -> LeaseConnection:
    """Return an SSH command that jumps over the bastion to the pod's internal name.

    Only the bastion may reach the pod.
    """
    inside = f"{names.anchor_name(lease.pk, lease.generation)}.{names.namespace_name(lease.project_id)}.svc"
    return LeaseConnection("SSH", f"ssh -J {SSH_USER}@{cluster.bastion} {SSH_USER}@{inside}")
