"""How people reach what runs on a lease."""

import pytest

from broker.domain.states import LeaseState
from broker.models import Cluster, Lease
from broker.provisioners.kubernetes.render.doors import host
from broker.provisioners.kubernetes.spec import RouteSpec
from broker.provisioners.kubernetes.specs import lease_spec, route_spec
from broker.services.connections import Connection, connections
from broker.services.leases.orders import access_token, order_of
from tenants.services.walls import as_tenant
from tests.broker.domain.test_workloads import KEY
from tests.world import Home, Life, cards, home, offering

WAYS = {"domain": "leases.example", "door": "ingress/public", "bastion": "in.example"}


@pytest.fixture
def kestrel(life: Life) -> Home:
    cards(2)
    return home("Kestrel")


def ways(lease: Lease, **cluster: str) -> list[Connection]:
    """Return the ways in, were the lease's cluster a real one, set up like this."""
    Cluster.objects.update(**{"provisioner": "kubernetes", **WAYS, **cluster})
    with as_tenant(lease.tenant_id):
        return connections(Lease.objects.get(pk=lease.pk))


def test_a_box_is_entered_over_the_bastion(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, offering(), workload="ssh", ssh_keys=[KEY])
    tail, project = lease.pk.removeprefix("lse_"), lease.project_id.removeprefix("prj_")
    line = f"ssh -J gpubroker@in.example gpubroker@l-{tail}-g{lease.generation}.gt-{project}.svc"
    assert ways(lease) == [Connection("SSH", line)]
    assert ways(lease, bastion="") == []


def test_a_notebook_has_an_address_where_its_route_leads(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, offering(), workload="jupyter")
    (way,) = ways(lease)
    with as_tenant(lease.tenant_id):
        spec = lease_spec(order_of(Lease.objects.select_related("offering").get(pk=lease.pk)))
    assert spec.route is not None
    assert way.line == f"https://{host(spec, spec.route)}/"
    assert (way.is_link, way.secret) == (True, access_token(lease.pk))
    assert spec.access_token == way.secret


def test_an_endpoint_comes_with_a_call_that_tries_it(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, offering(), workload="vllm")
    endpoint, call = ways(lease)
    assert endpoint.line.endswith("/v1")
    assert call.line.startswith(f"curl {endpoint.line}/models")
    assert access_token(lease.pk) in call.line


@pytest.mark.parametrize("missing", ["domain", "door"])
def test_where_a_cluster_lets_nobody_in_there_is_no_address(missing: str, life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, offering(), workload="vscode")
    assert ways(lease, **{missing: ""}) == []


def test_what_listens_to_nobody_has_no_way_in(life: Life, kestrel: Home) -> None:
    leases = [
        life.lease(kestrel, offering(), workload="batch", command="true"),
        life.lease(kestrel, offering()),
    ]
    assert [ways(lease) for lease in leases] == [[], []]


def test_before_and_after_it_runs_there_is_no_way_in(life: Life, kestrel: Home) -> None:
    assert ways(life.lease(kestrel, offering(), LeaseState.QUEUED, workload="jupyter")) == []


def test_a_lease_whose_place_was_just_given_back_has_none(life: Life, kestrel: Home) -> None:
    lease = life.lease(kestrel, offering(), workload="jupyter")
    with as_tenant(lease.tenant_id):
        lease.allocations.update(released_at=life.now)
    assert ways(lease) == []


@pytest.mark.parametrize(
    ("door", "domain", "found"),
    [
        ("ingress/public", "x.example", RouteSpec("ingress", "public", "x.example")),
        ("gateway/edge/main", "x.example", RouteSpec("gateway", "main", "x.example", "edge")),
        ("ingress/public", "", None),
        ("", "x.example", None),
        ("ingress", "x.example", None),
    ],
)
def test_a_door_is_read(door: str, domain: str, found: RouteSpec | None) -> None:
    assert route_spec(door, domain) == found
