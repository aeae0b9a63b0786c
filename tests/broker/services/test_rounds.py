"""An agent's round: every project's walls and every lease's doors have their turn, no more often than may be."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from broker.domain.states import LeaseState
from broker.models import Cluster, ClusterObject, Lease
from broker.provisioners.base import order_name
from broker.provisioners.kubernetes import labels, pulse
from broker.provisioners.kubernetes.cluster import Way
from broker.provisioners.kubernetes.drivers.base import Unfit
from broker.provisioners.kubernetes.drivers.device_plugin import DevicePluginDriver
from broker.provisioners.kubernetes.transport import Transport
from broker.services import rounds
from broker.services.following import Agent
from broker.services.rounds import Round
from tests.broker.domain.fleet import MODELS
from tests.broker.provisioners.kubernetes.conftest import serve as serve
from tests.broker.provisioners.kubernetes.wire import Serve
from tests.broker.services.test_following import agent as agent
from tests.world import Home, Life, cards, home, offering

WALLS = ["Namespace", "ServiceAccount", "ResourceQuota", "LimitRange", *["NetworkPolicy"] * 3]


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let the round's time stand still but for what is added here."""
    passed = [5000.0]
    monkeypatch.setattr(rounds, "clock", SimpleNamespace(monotonic=lambda: sum(passed)))
    return passed


@pytest.fixture
def kestrel(life: Life) -> Home:
    cards(2)
    return home()


def going_round(installation: str = "ins_1") -> Round:
    Cluster.objects.update(provisioner="kubernetes", domain="leases.example", door="ingress/public")
    way = Way(Transport(dict), DevicePluginDriver(MODELS), installation, entrances=lambda: ("edge",))
    return Round(Cluster.objects.get().pk, way)


def anchored(lease: Lease, **meta: Any) -> None:
    """Write down what the agent saw of a lease's anchor."""
    marks = {
        labels.TENANT: lease.tenant_id,
        labels.PROJECT: lease.project_id,
        labels.LEASE: lease.pk,
        labels.INSTALLATION: "ins_1",
    }
    name = order_name(lease.pk, lease.generation)
    ClusterObject.objects.create(
        cluster=Cluster.objects.get(),
        kind="ConfigMap",
        namespace="gt-x",
        name=name,
        uid=f"u-{name}",
        version=1,
        order_name=name,
        body={"metadata": {"name": name, "labels": marks, **meta}},
        seen_at=lease.created_at,
    )


def kinds(found: list[dict[str, Any]]) -> list[str]:
    return [each["kind"] for each in found]


def test_walls_and_doors_have_their_turn_and_then_ten_minutes_of_rest(
    life: Life, kestrel: Home, moments: list[float]
) -> None:
    lease = life.lease(kestrel, offering(), workload="jupyter")
    anchored(lease)
    walk = going_round()
    assert kinds(walk.next()) == WALLS
    doors = walk.next()
    assert kinds(doors) == ["Ingress", "Secret", "Service"], "never what makes pods"
    assert {each["metadata"]["ownerReferences"][0]["uid"] for each in doors} == {
        f"u-{order_name(lease.pk, lease.generation)}"
    }
    assert walk.next() == []
    moments.append(rounds.AGAIN_S - 1)
    assert walk.next() == []
    moments.append(1)
    assert {tuple(kinds(walk.next())) for _ in range(2)} == {tuple(WALLS), ("Ingress", "Secret", "Service")}


def test_a_project_is_walled_once_however_many_leases_it_has(
    life: Life, kestrel: Home, moments: list[float]
) -> None:
    for _ in range(2):
        anchored(life.lease(kestrel, offering(), workload="jupyter"))
    walk = going_round()
    found = [tuple(kinds(walk.next())) for _ in range(4)]
    assert (found.count(tuple(WALLS)), found.count(("Ingress", "Secret", "Service"))) == (1, 2)
    assert found[-1] == ()


def test_what_is_going_or_anothers_has_no_turn(life: Life, kestrel: Home, moments: list[float]) -> None:
    lease = life.lease(kestrel, offering())
    anchored(lease, deletionTimestamp="2026-11-21T09:00:00Z")
    assert going_round().next() == []
    ClusterObject.objects.all().delete()
    anchored(lease)
    assert going_round("ins_2").next() == []


def test_only_leases_that_are_active_have_doors_put_right(
    life: Life, kestrel: Home, moments: list[float]
) -> None:
    lease = life.lease(kestrel, offering(), LeaseState.PROVISIONING, workload="jupyter")
    anchored(lease)
    walk = going_round()
    assert [kinds(walk.next()) for _ in range(2)] == [WALLS, []]


def test_an_anchor_of_another_generation_owns_no_doors(
    life: Life, kestrel: Home, moments: list[float]
) -> None:
    anchored(life.lease(kestrel, offering(), workload="jupyter"))
    ClusterObject.objects.update(order_name="l-another-g1")
    walk = going_round()
    assert [kinds(walk.next()) for _ in range(2)] == [WALLS, []]


def test_what_cannot_be_rendered_is_left_to_workers(
    life: Life, kestrel: Home, moments: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unfit(*_: Any, **__: Any) -> None:
        raise Unfit("no such slice")

    monkeypatch.setattr(rounds, "lease_objects", unfit)
    anchored(life.lease(kestrel, offering(), workload="jupyter"))
    walk = going_round()
    assert [kinds(walk.next()) for _ in range(2)] == [WALLS, []]


def test_whoever_hurries_begins_anew_and_rests_afterwards(
    life: Life, kestrel: Home, moments: list[float]
) -> None:
    anchored(life.lease(kestrel, offering(), workload="jupyter"))
    walk = going_round()
    while walk.next():
        pass
    walk.hurry()
    assert (bool(walk.next()), walk.every_s) == (True, rounds.HURRIED_S)
    while walk.next():
        pass
    assert walk.every_s == rounds.EVERY_S


def test_however_many_leases_are_at_rest_they_are_written_to_less_than_once_in_a_second() -> None:
    assert 1 / rounds.EVERY_S + 1 / pulse.EVERY_S <= 0.7


def test_an_agent_hands_over_one_subject_at_a_time_in_a_cluster_that_it_sees(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [["first"], ["second"], [], ["third"]]
    monkeypatch.setattr(agent.round, "next", lambda: turns.pop(0))
    monkeypatch.setattr(agent, "_sees_all", lambda: True)
    waiting = agent.mender._waiting

    def turned() -> list[Any]:
        agent._mend()
        return list(waiting)

    assert turned() == [], "nothing vouches for the cluster yet"
    agent.pulse.beats = 1
    assert (turned(), turned()) == (["first"], ["first"]), "the first is not done"
    waiting.clear()
    assert turned() == ["second"]
    waiting.clear()
    assert turned() == []
    agent.frozen = True
    assert turned() == []
    agent.frozen, agent._suspicion = False, "another cluster answers"
    assert turned() == []
    agent._suspicion = ""
    monkeypatch.setattr(agent, "_sees_all", lambda: False)
    assert turned() == []


def test_when_people_shall_come_in_another_way_an_agent_hurries(
    agent: Agent, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent.way = replace(agent.way, transport=serve().transport)
    agent._inventory_at = float("inf")
    agent.turn(0)
    assert agent.round.every_s == rounds.EVERY_S
    Cluster.objects.update(entrances="edge")
    agent.turn(0)
    assert agent.round.every_s == rounds.EVERY_S, "it looks every few seconds"
    agent._return_at = 0.0
    agent.turn(0)
    assert agent.round.every_s == rounds.HURRIED_S
