"""An agent whose reflectors run while a test takes its turns."""

from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event
from typing import Any

from broker.models import ClusterObject
from broker.services.clusters.agent.cluster_agent import ClusterAgent
from ports import clock
from tests.cluster.installation import Installation


class RunningAgent:
    """An agent with running reflectors, whose turns a test takes."""

    def __init__(self, installed: Installation) -> None:
        self.installed = installed
        self.begin()

    def begin(self) -> None:
        self.ended, self.agent = Event(), ClusterAgent(self.installed.cluster)
        self.threads = self.agent.start(lambda going=self.ended: not going.is_set())  # type: ignore[misc]
        self.installed.agent = self.agent

    def die(self) -> None:
        """End, and with it all that was known; another one takes over."""
        self.ended.set()
        self.begin()

    def until(self, right: Callable[[], bool], *, seconds: float = 90) -> float:
        """Take turns until something is so; return how long it took."""
        began = clock.monotonic()
        while not right():
            assert clock.monotonic() - began < seconds, list(ClusterObject.objects.values_list("kind", "name"))
            self.installed.sim.clock.at = datetime.now(UTC)  # what it writes down is dated, and grows old
            self.agent.turn(0.05)
        return clock.monotonic() - began

    def is_believed(self) -> bool:
        """Tell whether workers ask the agent's rows instead of the cluster."""
        return bool(self.agent.connection.memory and self.agent.connection.memory.fresh_at(clock.now()))

    def pods(self) -> list[dict[str, Any]]:
        """Return the leases' pods on our node, without the reaper's."""
        mine = ClusterObject.objects.filter(kind="Pod", body__spec__nodeName=self.installed.node)
        mine = mine.exclude(spec_name="")
        return [each.body for each in mine]
