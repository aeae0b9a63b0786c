"""Connections to the program of a lease."""

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.domain.workloads.templates import JUPYTER
from broker.models import Cluster, Lease
from broker.provisioners.kubernetes.render.ingress import http_hosts
from broker.provisioners.kubernetes.render.spec import RouteSpec
from broker.provisioners.kubernetes.spec_conversion import lease_spec, route_spec
from broker.services.leases.lease_connections import LeaseConnection, is_simulated, lease_connections_of
from broker.services.leases.provision_specs import access_token, load_provision_spec
from tenants.services.rls import tenant_scope
from tests.broker.domain.workloads.test_workloads import KEY
from tests.simulation import Simulation, TenantContext, create_gpus, create_tenant, offering

INGRESS_SETTINGS = {"domain": "leases.example", "ingress": "ingress/public", "bastion": "in.example"}


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(2)
    return create_tenant("Kestrel")


def connections(lease: Lease, **cluster: str) -> list[LeaseConnection]:
    """Return the connections of a lease in a Kubernetes cluster with these settings."""
    Cluster.objects.update(**{"provisioner": "kubernetes", **INGRESS_SETTINGS, **cluster})
    with tenant_scope(lease.tenant_id):
        return lease_connections_of(Lease.objects.get(pk=lease.pk))


def test_an_ssh_connection_uses_the_bastion(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), workload="ssh", ssh_keys=[KEY])
    tail, project = lease.pk.removeprefix("lse_"), lease.project_id.removeprefix("prj_")
    line = f"ssh -J gpubroker@in.example gpubroker@l-{tail}-g{lease.generation}.gt-{project}.svc"
    command, entry, link = connections(lease)
    assert command == LeaseConnection("SSH", line)
    assert entry.line.splitlines() == [
        f"Host lease-{tail}",
        f"  HostName l-{tail}-g{lease.generation}.gt-{project}.svc",
        "  User gpubroker",
        "  ProxyJump gpubroker@in.example",
    ]
    assert (link.label, link.is_link) == ("VS Code", True)
    assert link.line == f"vscode://vscode-remote/ssh-remote+lease-{tail}/home/gpubroker"
    assert connections(lease, bastion="") == []


def test_a_notebook_connection_is_the_url_of_its_route(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), workload="jupyter")
    (way,) = connections(lease)
    with tenant_scope(lease.tenant_id):
        spec = lease_spec(load_provision_spec(Lease.objects.select_related("offering").get(pk=lease.pk)))
    assert spec.route is not None
    (host,) = http_hosts(lease.pk, JUPYTER.ports, spec.route.domain).values()
    assert way.line == f"https://{host}/"
    assert (way.is_link, way.secret) == (True, access_token(lease.pk))
    assert spec.access_token == way.secret
    assert way.sign_in_url == f"{way.line}lab?token={way.secret}"


def test_an_endpoint_includes_an_example_call(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), workload="vllm")
    endpoint, call = connections(lease)
    assert endpoint.line.endswith("/v1")
    assert call.line.startswith(f"curl {endpoint.line}/models")
    assert access_token(lease.pk) in call.line


def test_code_servers_link_signs_in_by_its_form(sim: Simulation, kestrel: TenantContext) -> None:
    (way,) = connections(sim.create_lease(kestrel, offering(), workload="vscode"))
    assert (way.is_link, way.sign_in_url, way.sign_in_form) == (True, "", f"{way.line}login")
    assert way.secret


def test_a_lease_is_simulated_while_it_holds_a_slice_of_a_simulated_cluster(
    sim: Simulation, kestrel: TenantContext
) -> None:
    lease = sim.create_lease(kestrel, offering())
    queued = sim.create_lease(kestrel, offering(), LeaseState.QUEUED)
    with tenant_scope(lease.tenant_id):
        assert is_simulated(Lease.objects.get(pk=lease.pk))
        assert not is_simulated(Lease.objects.get(pk=queued.pk))
        Cluster.objects.update(provisioner="kubernetes")
        assert not is_simulated(Lease.objects.get(pk=lease.pk))


@pytest.mark.parametrize("missing", ["domain", "ingress"])
def test_a_cluster_without_ingress_settings_has_no_connections(
    missing: str, sim: Simulation, kestrel: TenantContext
) -> None:
    lease = sim.create_lease(kestrel, offering(), workload="vscode")
    assert connections(lease, **{missing: ""}) == []


def test_a_lease_without_a_listening_program_has_no_connections(sim: Simulation, kestrel: TenantContext) -> None:
    leases = [
        sim.create_lease(kestrel, offering(), workload="batch", command="python train.py"),
        sim.create_lease(kestrel, offering()),
    ]
    assert [connections(lease) for lease in leases] == [[], []]


def test_a_queued_lease_has_no_connections(sim: Simulation, kestrel: TenantContext) -> None:
    assert connections(sim.create_lease(kestrel, offering(), LeaseState.QUEUED, workload="jupyter")) == []


def test_a_lease_without_allocations_has_no_connections(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), workload="jupyter")
    with tenant_scope(lease.tenant_id):
        lease.allocations.update(released_at=sim.now)
    assert connections(lease) == []


@pytest.mark.parametrize(
    ("ingress", "domain", "found"),
    [
        ("ingress/public", "x.example", RouteSpec("ingress", "public", "x.example")),
        ("gateway/edge/main", "x.example", RouteSpec("gateway", "main", "x.example", "edge")),
        ("ingress/public", "", None),
        ("", "x.example", None),
        ("ingress", "x.example", None),
    ],
)
def test_ingress_settings_are_parsed(ingress: str, domain: str, found: RouteSpec | None) -> None:
    assert route_spec(ingress, domain) == found
