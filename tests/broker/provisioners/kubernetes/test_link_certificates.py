"""One wildcard certificate of the ingress is valid for the links of every HTTP port of a lease."""

import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from broker.domain.workloads.template_contents import TemplateContents, workload_template
from broker.domain.workloads.templates import ContainerPort, Workload
from broker.provisioners.kubernetes.render.lease import lease_objects
from tests.broker.provisioners.kubernetes.lease_specs import LEASE, PLUGIN, ROUTE, of_kind
from tests.controlplane.certificates import Authority

PORTS = tuple(ContainerPort(name, 7000 + number) for number, name in enumerate(("web", "metrics", "a" * 15)))


def hosts_of_links(kind: str) -> list[str]:
    """Return the hosts that a lease with several HTTP ports is routed from."""
    custom = workload_template("tpl_1", "App", TemplateContents("ghcr.io/acme/app:1", ports=PORTS))
    lease = replace(LEASE, workload=Workload("own", custom=custom), route=replace(ROUTE, kind=kind))
    objects = lease_objects(lease, PLUGIN, anchor_uid="u-anchor")
    if kind == "gateway":
        return [host for route in of_kind(objects, "HTTPRoute") for host in route["spec"]["hostnames"]]
    (ingress,) = of_kind(objects, "Ingress")
    return [rule["host"] for rule in ingress["spec"]["rules"]]


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> None:
    """Perform a TLS handshake in memory; raises SSLError if the client refuses the certificate."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while ends:
        for end in list(ends):
            try:
                end.do_handshake()
                ends.remove(end)
            except ssl.SSLWantReadError:
                continue


@pytest.fixture
def contexts(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return a browser and an ingress controller with a wildcard certificate as its default."""
    authority = Authority.new()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*authority.website("*.leases.example").write(tmp_path, "ingress"))
    client = ssl.create_default_context(cadata=authority.certificate.decode())
    return client, server


@pytest.mark.parametrize("kind", ["ingress", "gateway"])
def test_the_link_of_every_port_passes_a_tls_handshake(
    kind: str, contexts: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    hosts = hosts_of_links(kind)
    assert len(set(hosts)) == len(PORTS)
    for host in hosts:
        shake_hands(*contexts, host)


def test_a_host_two_labels_below_the_domain_would_not(contexts: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(*contexts, "web.l-1.leases.example")
