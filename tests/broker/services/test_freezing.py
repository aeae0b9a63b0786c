"""A cluster that is another one, or an older state of itself, is believed nothing until an operator says so."""

from typing import Any

import pytest

from broker.models import Cluster, ClusterObject, ClusterWatch, Gpu
from broker.provisioners.base import Unanswered
from broker.provisioners.frozen import FrozenProvisioner
from broker.provisioners.kubernetes.cluster import Way
from broker.provisioners.kubernetes.kinds import POD
from broker.provisioners.kubernetes.sink import Found
from broker.services import clusters, freezing
from broker.services.following import Agent
from broker.services.leases.orders import order_of
from tenants.services.walls import as_tenant
from tests.broker.provisioners.kubernetes.conftest import serve as serve
from tests.broker.provisioners.kubernetes.wire import Serve
from tests.broker.services.test_following import agent as agent
from tests.broker.services.test_following import found as of_kind
from tests.broker.services.test_following import listing
from tests.world import OPERATOR, Life, cards, fresh, home, offering


def test_a_lease_in_a_frozen_cluster_keeps_its_state_and_is_charged_to_its_last_proof(life: Life) -> None:
    cards(1)
    lease = life.lease(home(), offering())
    last = fresh(lease).seen_at
    freezing.freeze(Cluster.objects.get().pk, "another cluster answers in its place")
    life.go(600)
    silent = fresh(lease)
    assert (silent.state, silent.seen_at) == ("active", last)
    assert "waits for an operator" in silent.conditions["unreachable"]
    with as_tenant(lease.tenant_id):
        assert isinstance(clusters.provisioner_of(order_of(silent)), FrozenProvisioner)
    freezing.thaw(Cluster.objects.get(), why="looked", actor=OPERATOR, now=life.now)
    life.go(60)
    assert (fresh(lease).state, fresh(lease).conditions) == ("active", {})


def test_nothing_is_sold_where_it_is_frozen(life: Life) -> None:
    cards(1)
    freezing.freeze(Cluster.objects.get().pk, "an older state of it answers")
    lease = life.ask(home(), offering())
    life.go(30)
    assert fresh(lease).state == "queued"
    assert not Gpu.objects.sellable().exists()


@pytest.mark.parametrize("act", ["ensure", "observe", "remove"])
def test_a_frozen_cluster_is_asked_nothing(life: Life, act: str) -> None:
    cards(1)
    lease = life.lease(home(), offering())
    with as_tenant(lease.tenant_id):
        order = order_of(fresh(lease))
    frozen = FrozenProvisioner("why")
    with pytest.raises(Unanswered, match="waits for an operator: why"):
        getattr(frozen, act)(order, now=life.now)
    with pytest.raises(Unanswered):
        frozen.names()
    with pytest.raises(Unanswered):
        frozen.remove_named(order.name, now=life.now)


def test_a_list_older_than_what_was_seen_freezes_the_cluster_and_ends_nothing(
    agent: Agent, life: Life
) -> None:
    pod = {"metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "90"}}
    whole = [found("BEGUN", version=0), found("PAGED", pod, version=100), found("LISTED", version=100)]
    agent.absorb(whole, now=life.now)
    agent.absorb([found("PAGED", version=70), found("LISTED", version=120)], now=life.now)
    assert agent.frozen
    assert "an older state" in Cluster.objects.get().frozen
    assert ClusterObject.objects.get().name == "p"
    agent.absorb([found("LISTED", version=120)], now=life.now)
    assert ClusterObject.objects.exists()
    freezing.freeze(agent.cluster.pk, "another reason")
    assert "an older state" in Cluster.objects.get().frozen
    agent.follow(lambda: True)  # ends by itself: whoever follows it begins anew
    freezing.thaw(Cluster.objects.get(), why="looked", actor=OPERATOR, now=life.now)
    assert "broker.sweep_all" in [hint[2] for hint in life.hints]  # what came back goes before others come
    assert not ClusterObject.objects.exists()
    assert not ClusterWatch.objects.exists()
    assert not freezing.is_frozen(agent.cluster.pk)


def test_another_cluster_at_the_same_address_freezes_it(agent: Agent, life: Life, serve: Serve) -> None:
    other = {"metadata": {"name": "kube-system", "uid": "another"}}
    agent.way = Way(serve(listing(other)).transport, agent.way.driver, uid=lambda: "joined")
    agent.turn(0)
    assert agent.frozen
    assert "another cluster answers" in Cluster.objects.get().frozen


def found(how: str, *items: Any, version: int) -> Found:
    return of_kind(POD, how, *items, version=version)
