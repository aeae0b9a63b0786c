"""Cluster agent with running reflectors, whose main loop a test drives."""

from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event
from typing import Any

from broker.models import ClusterObject
from broker.services.clusters.agent.cluster_agent import ClusterAgent
from ports import clock
from tests.cluster.installation import Installation


class RunningAgent:
    """Agent with running reflectors; a test runs its main loop."""

    def __init__(self, installed: Installation) -> None:
        self.installed = installed
        self.start()

    def start(self) -> None:
        self.ended, self.agent = Event(), ClusterAgent(self.installed.cluster)
        self.threads = self.agent.start(lambda going=self.ended: not going.is_set())  # type: ignore[misc]
        self.installed.agent = self.agent

    def restart(self) -> None:
        """Replace the agent with a new one without state."""
        self.ended.set()
        self.start()

    def run_loop_until(self, condition: Callable[[], bool], *, seconds: float = 90) -> float:
        """Run the main loop until the condition holds; return how long it took."""
        began = clock.monotonic()
        while not condition():
            assert clock.monotonic() - began < seconds, list(ClusterObject.objects.values_list("kind", "name"))
            self.installed.sim.clock.at = datetime.now(UTC)  # its rows expire by this clock
            self.agent.run_turn(0.05)
        return clock.monotonic() - began

    def reads_are_cached(self) -> bool:
        """Return whether workers read the agent's rows instead of the cluster."""
        return bool(self.agent.connection.memory and self.agent.connection.memory.fresh_at(clock.now()))

    def pods(self) -> list[dict[str, Any]]:
        """Return the leases' pods on our node, without the reaper's."""
        mine = ClusterObject.objects.filter(kind="Pod", body__spec__nodeName=self.installed.node)
        mine = mine.exclude(spec_name="")
        return [each.body for each in mine]
