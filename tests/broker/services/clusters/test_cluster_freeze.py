"""Freezing of replaced or restored clusters, until an operator decides."""

from typing import Any

import pytest

from broker.models import Cluster, ClusterObject, ClusterWatch, Gpu
from broker.provisioners.base import ClusterUnreachable
from broker.provisioners.frozen import FrozenProvisioner
from broker.provisioners.kubernetes.agent.event_buffer import WatchEvent
from broker.provisioners.kubernetes.client.kinds import POD
from broker.provisioners.kubernetes.cluster_connection import ClusterConnection
from broker.services.clusters.agent.cluster_agent import ClusterAgent
from broker.services.clusters.health import cluster_freeze
from broker.services.inventory import cluster_provisioners
from broker.services.leases.provision_specs import load_provision_spec
from tenants.services.rls import tenant_scope
from tests.broker.provisioners.kubernetes.scripted_server import StartServer
from tests.broker.services.clusters.test_cluster_agent import found as of_kind
from tests.broker.services.clusters.test_cluster_agent import listing, reconnect
from tests.simulation import OPERATOR, Simulation, create_gpus, create_tenant, offering, reload_lease


@pytest.mark.deep
def test_a_lease_in_a_frozen_cluster_stays_active_and_is_charged_to_its_last_observation(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering())
    last = reload_lease(lease).seen_at
    cluster_freeze.freeze_cluster(Cluster.objects.get().pk, "another cluster responds at this address")
    sim.run_with_sweeps(600)
    silent = reload_lease(lease)
    assert (silent.state, silent.seen_at) == ("active", last)
    assert "frozen until an operator decides" in silent.conditions["unreachable"]
    with tenant_scope(lease.tenant_id):
        assert isinstance(cluster_provisioners.provisioner_of(load_provision_spec(silent)), FrozenProvisioner)
    cluster_freeze.unfreeze_cluster(Cluster.objects.get(), why="looked", actor=OPERATOR, now=sim.now)
    sim.run_with_sweeps(60)
    assert (reload_lease(lease).state, reload_lease(lease).conditions) == ("active", {})


def test_gpus_of_a_frozen_cluster_are_not_sold(sim: Simulation) -> None:
    create_gpus(1)
    cluster_freeze.freeze_cluster(Cluster.objects.get().pk, "its state is older than seen before")
    lease = sim.request_lease(create_tenant(), offering())
    sim.run_with_sweeps(30)
    assert reload_lease(lease).state == "queued"
    assert not Gpu.objects.sellable().exists()


@pytest.mark.parametrize("act", ["ensure", "observe", "remove"])
def test_a_frozen_cluster_receives_no_requests(sim: Simulation, act: str) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering())
    with tenant_scope(lease.tenant_id):
        order = load_provision_spec(reload_lease(lease))
    frozen = FrozenProvisioner("why")
    with pytest.raises(ClusterUnreachable, match="until an operator decides: why"):
        getattr(frozen, act)(order, now=sim.now)
    with pytest.raises(ClusterUnreachable):
        frozen.names()
    with pytest.raises(ClusterUnreachable):
        frozen.remove_named(order.name, now=sim.now)


def test_a_list_with_an_older_version_freezes_the_cluster_and_keeps_objects(
    agent: ClusterAgent, sim: Simulation
) -> None:
    pod = {"metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "90"}}
    whole = [found("BEGUN", version=0), found("PAGED", pod, version=100), found("LISTED", version=100)]
    agent.absorb(whole, now=sim.now)
    agent.absorb([found("PAGED", version=70), found("LISTED", version=120)], now=sim.now)
    assert agent.frozen
    assert "its state is older" in Cluster.objects.get().frozen
    assert ClusterObject.objects.get().name == "p"
    agent.absorb([found("LISTED", version=120)], now=sim.now)
    assert ClusterObject.objects.exists()
    cluster_freeze.freeze_cluster(agent.cluster.pk, "another reason")
    assert "its state is older" in Cluster.objects.get().frozen
    agent.follow(lambda: True)  # ends by itself; the next agent starts again
    cluster_freeze.unfreeze_cluster(Cluster.objects.get(), why="looked", actor=OPERATOR, now=sim.now)
    assert "broker.sweep_all" in [hint[2] for hint in sim.messages]  # what came back goes before others come
    assert not ClusterObject.objects.exists()
    assert not ClusterWatch.objects.exists()
    assert not cluster_freeze.is_frozen(agent.cluster.pk)


def test_a_cluster_replaced_at_the_same_address_is_frozen(
    agent: ClusterAgent, sim: Simulation, serve: StartServer
) -> None:
    other = {"metadata": {"name": "kube-system", "uid": "another"}}
    reconnect(agent, ClusterConnection(serve(listing(other)).transport, agent.connection.driver, uid=lambda: "joined"))
    agent.run_turn(0)
    assert agent.frozen
    assert "another cluster responds" in Cluster.objects.get().frozen


def found(how: str, *items: Any, version: int) -> WatchEvent:
    return of_kind(POD, how, *items, version=version)
