"""The kube_agent command: one thread per cluster, restarts and leadership."""

from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread
from typing import Any

import pytest
from django.db import OperationalError, connections

from broker.management.commands import kube_agent
from broker.models import Cluster
from broker.provisioners.base import ClusterUnreachable
from broker.services.clusters.agent import cluster_agent, leadership
from ports import clock


class Scene:
    """A command with simulated clusters, leadership and agents."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.command = kube_agent.Command()
        self.followed: list[str] = []
        self.frozen: set[str] = set()
        self.refusals: list[Exception] = []
        self.led = True
        self.waits = self.loaded = 0
        monkeypatch.setattr(kube_agent.clock, "sleep", self.nap)
        monkeypatch.setattr(kube_agent.cluster_freeze, "is_frozen", lambda pk: pk in self.frozen)
        monkeypatch.setattr(kube_agent, "try_become_leader", lambda cluster: self.led)
        monkeypatch.setattr(kube_agent, "ClusterAgent", self.agent)
        monkeypatch.setattr(kube_agent.gpu_catalogue, "load_gpu_models", self.load)

    def load(self) -> None:
        self.loaded += 1

    def agent(self, cluster: Cluster) -> Any:
        scene = self

        class Played:
            def follow(self, going: Callable[[], bool], alive: Callable[[], None]) -> None:
                if scene.refusals:
                    raise scene.refusals.pop()
                scene.followed.append(cluster.name)

        return Played()

    def nap(self, seconds: float) -> None:
        self.waits += 1
        if self.waits >= 3:
            self.command.running = False


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


EAST = Cluster(id="clu_east", name="east")


def test_an_agent_restarts_after_a_database_or_cluster_failure(scene: Scene) -> None:
    scene.refusals = [OperationalError("the database restarts"), ClusterUnreachable("no credentials yet")]
    scene.command.follow(EAST)
    assert scene.followed == ["east"]
    assert scene.loaded == 3  # the leader loads all GPU models


def test_a_frozen_cluster_or_one_with_another_leader_is_not_followed(scene: Scene) -> None:
    scene.frozen = {"clu_east"}
    scene.command.follow(EAST)
    scene.frozen, scene.led, scene.waits, scene.command.running = set(), False, 0, True
    scene.command.follow(EAST)
    assert scene.followed == []


def test_a_cluster_registered_later_gets_its_own_thread(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    lasting = Event()

    def follow(cluster: Cluster) -> None:
        begun.append(cluster.name)
        if cluster.name == "west":
            lasting.wait(60)

    joined = iter([[], [Cluster(id="clu_west", name="west")], [Cluster(id="clu_west", name="west"), EAST]])
    monkeypatch.setattr(scene.command, "follow", follow)
    monkeypatch.setattr(scene.command, "_kubernetes_clusters", lambda: next(joined))
    try:
        scene.command.follow_all()
    finally:
        lasting.set()
    assert begun == ["west", "east"]


@pytest.mark.django_db
def test_a_crashed_thread_loses_its_leadership(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube_agent, "try_become_leader", leadership.try_become_leader)
    scene.refusals = [cluster_agent.WatchEnded("a watch ended")]
    kept: list[Any] = []

    def dies() -> None:
        kept.append(connections["default"])  # keeps the connection from being garbage-collected
        with suppress(cluster_agent.WatchEnded):
            scene.command.follow(EAST)

    thread = Thread(target=dies)
    thread.start()
    thread.join()
    assert scene.refusals == []
    ends = clock.monotonic() + 10
    while not leadership.try_become_leader(EAST):  # the server hears of it a moment later
        assert clock.monotonic() < ends
    with connections["default"].cursor() as cursor:  # the session goes on
        cursor.execute("SELECT pg_advisory_unlock_all()")
