"""Connection details of an active lease: SSH command, endpoint or web address."""

from dataclasses import dataclass, replace

from django.conf import settings

from broker.domain.lifecycle.states import LeaseState
from broker.domain.workloads.templates import HOME, JUPYTER, SSH, VLLM, VSCODE, WorkloadTemplate
from broker.models import Cluster, Lease
from broker.provisioners.kubernetes import names
from broker.provisioners.kubernetes.render.ingress import http_hosts, service_port
from broker.services.leases.provision_specs import access_token

SSH_USER = "gpubroker"


@dataclass(frozen=True)
class LeaseConnection:
    """One way to connect: a command, lines of a file, or a URL."""

    label: str
    line: str
    is_link: bool = False
    secret: str = ""
    sign_in_url: str = ""  # opens the link signed in; empty: the link itself
    sign_in_form: str = ""  # takes the secret as the field `password` of a form, and opens the link signed in
    is_open: bool = False  # whoever knows the address can use it: the program asks for no token

    @property
    def is_block(self) -> bool:
        """Return whether it has several lines, for a file."""
        return "\n" in self.line


def is_simulated(lease: Lease) -> bool:
    """Return whether a lease is in a simulated cluster, where no program runs."""
    held = lease.allocations.filter(generation=lease.generation, released_at=None)
    provisioner = held.values_list("gpu__node__cluster__provisioner", flat=True).first()
    return provisioner is not None and provisioner not in settings.PROVISIONERS


def lease_connections_of(lease: Lease) -> list[LeaseConnection]:
    """Return how to connect to an active lease.

    Empty when its cluster has no ingress, or when nothing listens.
    """
    template = lease.workload_template
    if lease.state != LeaseState.ACTIVE or template is None or not template.ports:
        return []
    places = lease.allocations.filter(generation=lease.generation, released_at=None)
    held = places.select_related("gpu__node__cluster").first()
    if held is None:
        return []
    cluster = held.gpu.node.cluster
    if lease.launch_template:
        return [*_http_connections(lease, template, cluster), *_tcp_connections(lease, template, cluster)]
    if template is SSH:
        return _ssh_connections(lease, cluster) if cluster.bastion and lease.ssh_keys else []
    if not cluster.domain or not cluster.ingress:
        return []
    (host,) = http_hosts(lease.pk, template.ports, cluster.domain).values()
    address = f"https://{host}"
    secret = access_token(lease.pk)
    if template is VLLM:
        call = f"curl {address}/v1/models -H 'Authorization: Bearer {secret}'"
        return [LeaseConnection("Endpoint", f"{address}/v1", secret=secret), LeaseConnection("Try it", call)]
    signed_in = f"{address}/lab?token={secret}" if template is JUPYTER else ""
    form = f"{address}/login" if template is VSCODE else ""
    link = LeaseConnection(template.label, f"{address}/", is_link=True, secret=secret)
    return [replace(link, sign_in_url=signed_in, sign_in_form=form)]


def _http_connections(lease: Lease, template: WorkloadTemplate, cluster: Cluster) -> list[LeaseConnection]:
    """Return the link of each HTTP port of a saved template."""
    if not cluster.domain or not cluster.ingress:
        return []
    secret = access_token(lease.pk) if template.token_env else ""
    hosts = http_hosts(lease.pk, template.ports, cluster.domain)
    return [
        LeaseConnection(
            template.label if len(hosts) == 1 else f"{template.label} {port.name}",
            f"https://{host}/",
            is_link=True,
            secret=secret,
            is_open=not secret,
        )
        for port, host in hosts.items()
    ]


def _tcp_connections(lease: Lease, template: WorkloadTemplate, cluster: Cluster) -> list[LeaseConnection]:
    """Return a forwarding SSH command for each other port of a saved template."""
    if not cluster.bastion:
        return []
    inside, tunnel = _inside_name(lease), f"{SSH_USER}@{cluster.bastion}"
    return [
        LeaseConnection(
            f"{template.label} {port.name}",
            f"ssh -N -L {port.number}:{inside}:{service_port(port, template.ports)} {tunnel}",
        )
        for port in template.ports
        if not port.is_http
    ]


def _ssh_connections(lease: Lease, cluster: Cluster) -> list[LeaseConnection]:
    """Return an SSH command, an entry of ~/.ssh/config and a VS Code link.

    They jump over the bastion to the pod's internal name: only the bastion may reach the pod.
    """
    inside = _inside_name(lease)
    alias = f"lease-{names.id_suffix(lease.pk)}"
    entry = f"Host {alias}\n  HostName {inside}\n  User {SSH_USER}\n  ProxyJump {SSH_USER}@{cluster.bastion}"
    return [
        LeaseConnection("SSH", f"ssh -J {SSH_USER}@{cluster.bastion} {SSH_USER}@{inside}"),
        LeaseConnection("~/.ssh/config", entry),
        LeaseConnection("VS Code", f"vscode://vscode-remote/ssh-remote+{alias}{HOME}", is_link=True),
    ]


def _inside_name(lease: Lease) -> str:
    return f"{names.anchor_name(lease.pk, lease.generation)}.{names.namespace_name(lease.project_id)}.svc"


def sign_in_origins(lease: Lease) -> list[str]:
    """Return the origins to which a lease's page may send its sign-in form."""
    if lease.workload_template is not VSCODE:
        return []
    domains = Cluster.objects.exclude(domain="").order_by("domain").values_list("domain", flat=True)
    return [f"https://*.{domain}" for domain in domains.distinct()]
