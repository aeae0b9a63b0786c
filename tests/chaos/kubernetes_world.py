"""A small installation on a real control plane whose workers, agent and clock a test holds in its hands."""

import random
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event, Thread, current_thread, main_thread
from typing import Any, Self

from billing.services.showcase import prices
from broker.models import Cluster, Lease, Offering, OfferingState
from broker.provisioners.kubernetes import transport
from broker.provisioners.kubernetes.transport import Answer, Api
from broker.services import catalogue, clusters, joining
from broker.services.following import Agent
from ports import clock, doorbell
from tenants.services.refusals import Refused
from tenants.services.walls import as_sweep
from tests.cluster.installed import install
from tests.cluster.proxy import Proxy
from tests.cluster.stages import PLUGIN
from tests.controlplane.nodes import GpuNode, Nodes
from tests.controlplane.plane import ControlPlane
from tests.world import OPERATOR, Home, Life, home, work

IMAGE_THAT_RUNS = "registry.example/acts:hang-0s"
REGION, UNITS = "eu-north", 12
NODE = GpuNode(cards=3, cut=2, mig={"1g.10gb": 14})
SWEEP_S, SWEEP_ALL_S, AGENT_S = 5.0, 30.0, 0.5
# With the calls of one step: enough to be asked again, too little to hold ten thousand steps up.
PATIENCE_S, IN_OUTAGES_S = 2.0, 0.2


class Killed(BaseException):
    """The worker is no more: nothing of it may go on, whatever it catches."""


@dataclass
class Fuse:
    """Kills whoever makes one of the next calls to a cluster, before it is sent or once it was answered."""

    calls: int = 0
    after: bool = False


@dataclass
class World:
    """One cluster, three tenants, one worker, one agent."""

    plane: ControlPlane
    seed: int
    fuse: Fuse = field(default_factory=Fuse)
    refused: int = 0
    killed: int = 0
    patience_s: float = PATIENCE_S

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.stack = ExitStack()

    def __enter__(self) -> Self:
        self.standing = self.stack.enter_context(clock.standing_at(datetime.now(UTC)))
        self.life = Life(self.standing)
        self.stack.enter_context(doorbell.heard_by(self.life.hear))
        self.proxy = self.stack.enter_context(Proxy(self.plane))
        self._keep_calls_short()
        install(self.plane.api, PLUGIN)
        self.nodes = Nodes(self.plane.api, "chaos")
        self.names = self.nodes.add_many(3, NODE)
        catalogue.load_gpu_models()
        self.cluster: Cluster = joining.join(
            name="chaos",
            region=REGION,
            kubeconfig=self.proxy.kubeconfig,
            driver="device_plugin",
            actor=OPERATOR,
            now=self.life.now,
        )
        self.began = self.life.now
        self._start_agent()
        self.stack.callback(self._stop_agent)
        self.agent._take_inventory(self.life.now)
        catalogue.derive_offerings(now=self.life.now)
        Offering.objects.filter(state=OfferingState.DRAFT).update(state=OfferingState.PUBLISHED)
        prices.publish_all(since=self.life.now - timedelta(hours=1), actor=OPERATOR, now=self.life.now)
        self.homes = [home(name, units=UNITS) for name in ("Kestrel", "Merlin", "Osprey")]
        self.offerings = {
            each.profile: each
            for each in Offering.objects.filter(price_class="on_demand", profile__in=("1g.10gb", "card"))
        }
        self._sweep_at = self._sweep_all_at = self._agent_at = 0.0
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()
        clusters._of_cluster.cache_clear()

    def ask(self, image: str, profile: str, **wanted: Any) -> None:
        """Let somebody ask for a lease; what quotas refuse is counted."""
        try:
            self.life.ask(self.some_home(), self.offerings[profile], image=image, **wanted)
        except Refused:
            self.refused += 1

    def some_home(self) -> Home:
        return self.chance.choice(self.homes)

    def leases(self, *states: str) -> list[Lease]:
        """Return leases, all or those in some states, in an order that does not change."""
        with as_sweep():
            found = Lease.objects.select_related("offering").order_by("id")
            return list(found.filter(state__in=states) if states else found)

    def turn(self) -> None:
        """Let a moment pass: the worker does what is rung for, beat sweeps, the agent writes what it saw."""
        self.standing.at = datetime.now(UTC)
        try:
            moment = clock.monotonic()
            if moment >= self._agent_at:
                self._agent_at = moment + AGENT_S
                self.agent.turn(0.005)
            self.life.run(0)
            if moment >= self._sweep_at:
                self._sweep_at = moment + SWEEP_S
                self.life.sweep()
            if moment >= self._sweep_all_at:
                self._sweep_all_at = moment + SWEEP_ALL_S
                work("broker.sweep_all", "", "", now=self.life.now)
        except Killed:
            self.killed += 1
            self.fuse.calls = 0
            clusters._of_cluster.cache_clear()  # the next process knows nothing

    def out(self, turns: int) -> None:
        """Let a few moments pass in which nobody answers."""
        self.patience_s = IN_OUTAGES_S
        for _ in range(turns):
            self.turn()
        self.patience_s = PATIENCE_S

    def kill_agent(self) -> None:
        """Let another agent take over, which knows nothing."""
        self._stop_agent()
        self._start_agent()

    def _start_agent(self) -> None:
        self.agent, self._over = Agent(self.cluster), Event()
        going = self._over
        self._threads = [
            Thread(target=each.follow, args=(lambda: not going.is_set(),), daemon=True)
            for each in self.agent.reflectors
        ]
        for thread in self._threads:
            thread.start()

    def _stop_agent(self) -> None:
        self._over.set()

    def _keep_calls_short(self) -> None:
        """Give calls little patience, and let each pass the fuse."""
        real, within, silence = Api.send, transport.Transport.within, transport.SILENCE_S
        fuse = self.fuse

        def send(api: Api, *what: Any, **how: Any) -> Answer:
            if current_thread() is not main_thread():  # the worker dies, not the agent's threads
                return real(api, *what, **how)
            fuse.calls -= 1
            dies = fuse.calls == 0
            if dies and not fuse.after:
                raise Killed
            with suppress(Killed):
                answer = real(api, *what, **how)
            if dies:
                raise Killed
            return answer

        Api.send = send  # type: ignore[method-assign]
        transport.Transport.within = lambda me, seconds=0.0: within(me, seconds or self.patience_s)  # type: ignore[method-assign]
        transport.SILENCE_S = 20.0

        def undo() -> None:
            Api.send = real  # type: ignore[method-assign]
            transport.Transport.within = within  # type: ignore[method-assign]
            transport.SILENCE_S = silence

        self.stack.callback(undo)
