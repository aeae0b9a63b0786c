"""The agent on a real control plane: what happens there reaches rows, leases and inventory, and survives its death."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from threading import Event
from typing import Any

import pytest

from broker.models import ClusterObject, ClusterWatch, Node
from broker.provisioners.kubernetes import transport
from broker.services.following import Agent
from ports import clock
from tests.cluster.test_product import Installation, offering
from tests.cluster.test_product import installed as installed
from tests.cluster.test_product import life as life
from tests.controlplane.nodes import Nodes
from tests.world import fresh


class Watching:
    """An agent whose reflectors run, and whose turns the test takes."""

    def __init__(self, installed: Installation) -> None:
        self.installed, self.ended = installed, Event()
        self.agent = Agent(installed.cluster)
        self.threads = self.agent.start(lambda: not self.ended.is_set())

    def until(self, right: Callable[[], bool], *, seconds: float = 30) -> float:
        """Take turns until something is so; return how long it took."""
        began = clock.monotonic()
        while not right():
            assert clock.monotonic() - began < seconds, list(
                ClusterObject.objects.values_list("kind", "name")
            )
            self.agent.turn(0.05)
        return clock.monotonic() - began

    def pods(self) -> list[dict[str, Any]]:
        mine = ClusterObject.objects.filter(kind="Pod", body__spec__nodeName=self.installed.node)
        return [each.body for each in mine]


@pytest.fixture
def watching(installed: Installation) -> Iterator[Watching]:
    made = Watching(installed)
    yield made
    made.ended.set()


def test_a_pod_is_seen_and_its_lease_is_rung_for(watching: Watching) -> None:
    installed = watching.installed
    watching.until(lambda: ClusterWatch.objects.count() == 3)
    lease = installed.until(
        installed.life.ask(installed.home, offering("card"), image="registry.example/acts:pull-1s"), "active"
    )
    watching.until(lambda: [pod["status"]["phase"] for pod in watching.pods()] == ["Running"])
    installed.life.release(lease)

    def released() -> bool:
        installed.life.clock.at = datetime.now(UTC)
        installed.life.run(0)
        return fresh(lease).state == "released"

    watching.until(released)
    assert watching.pods() == []
    assert all(each.lists == 1 for each in watching.agent.reflectors)


def test_the_agent_makes_a_lease_active_without_a_worker_and_nobody_reads(
    watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed, way = watching.installed, watching.agent.way
    watching.until(lambda: bool(way.memory and way.memory.fresh_at(clock.now())))
    asked: list[str] = []
    send = transport.Api.send

    def noted(self: transport.Api, method: str, path: str, **rest: Any) -> transport.Answer:
        asked.append(method)
        return send(self, method, path, **rest)

    monkeypatch.setattr(transport.Api, "send", noted)
    lease = installed.life.ask(installed.home, offering("card"), image="registry.example/acts:pull-1s")
    installed.life.run()
    installed.life.hints.clear()  # nobody would look again for seconds
    assert watching.until(lambda: fresh(lease).state == "active") < 5
    installed.life.run()
    assert "GET" not in asked


def test_a_lost_node_is_taken_out_and_comes_back_when_nothing_old_runs_there(
    watching: Watching, gpu_nodes: Nodes
) -> None:
    node = watching.installed.node

    def state() -> str:
        return Node.objects.get(name=node).state

    watching.until(lambda: ClusterWatch.objects.count() == 3)
    gpu_nodes.power(node, on=False)
    watching.until(lambda: state() == "lost", seconds=60)
    gpu_nodes.power(node, on=True)
    watching.until(lambda: state() == "ready", seconds=60)
