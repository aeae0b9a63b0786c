"""A small installation on a real control plane whose workers, agent and clock a test holds in its hands."""

import heapq
import random
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from threading import Event, current_thread, main_thread
from typing import Any, Self

from billing.services.showcase import prices
from broker.domain.cuts import WHOLE, Cut
from broker.domain.mig_configs import alias_of, name_of
from broker.domain.states import Condition
from broker.models import Cluster, Lease, Offering, OfferingState
from broker.provisioners.kubernetes import transport
from broker.provisioners.kubernetes.transport import Answer, Api
from broker.services import catalogue, clusters, joining, knocking, orphans, reconcile, sightings
from broker.services.following import Agent
from broker.services.layouts import stepping
from broker.services.volumes import keeping
from ports import clock, doorbell
from tenants.models import QuotaKind
from tenants.services.refusals import Refused
from tenants.services.walls import as_sweep
from tests.chaos.kubernetes_spans import BY_THE_BOOKS, EVERYWHERE, OUR_WORD, Piece, Silence
from tests.chaos.kubernetes_time import Jumps, Later
from tests.cluster.installed import install
from tests.cluster.stages import PLUGIN
from tests.controlplane.api import Object
from tests.controlplane.nodes import GpuNode, Nodes
from tests.controlplane.plane import ControlPlane
from tests.world import OPERATOR, Home, Life, home, work

IMAGE_THAT_RUNS = "registry.example/acts:hang-0s"
REGION, UNITS, ENDLESS = "eu-north", 12, 10**15
ONES = Cut.of(["1g.10gb"] * 7)
# Two ways in which a node may be cut, and what its device plugin then reports.
MIXED, ONLY_ONES = {0: WHOLE, 1: ONES, 2: ONES}, {0: ONES, 1: ONES, 2: ONES}
OFFERS = {
    name: offer
    for cuts, offer in (
        (MIXED, {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.10gb": 14}),
        (ONLY_ONES, {"nvidia.com/gpu": 0, "nvidia.com/mig-1g.10gb": 21}),
    )
    for name in (name_of(cuts), alias_of(name_of(cuts)))
}
NODE = GpuNode(cards=3, cut=2, mig={"1g.10gb": 14}, layouts=OFFERS)
NEIGHBOURS, URGENT = (
    "neighbours",
    "urgent",
)  # another department's namespace, and what its pods may push aside for
STRANGERS: tuple[Object, ...] = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NEIGHBOURS}},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu-operator"}},
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": URGENT},
        "value": 1_000_000,
    },
)
Hint = tuple[str, str, str]
SWEEP_S, SWEEP_ALL_S, AGENT_S = 2.0, 30.0, 0.5
# With the calls of one step: enough to be asked again, too little to hold ten thousand steps up.
PATIENCE_S, IN_OUTAGES_S = 2.0, 0.2


class Killed(BaseException):
    """The worker is no more: nothing of it may go on, whatever it catches."""


class AgentKilled(Killed):
    """The agent is no more, and what it knew is gone with it."""


@dataclass
class Fuse:
    """Kills whoever makes one of the next calls, before it is sent or once it was answered."""

    calls: int = 0
    after: bool = False


@dataclass
class World:
    """One cluster, three tenants, one worker, one agent."""

    plane: ControlPlane
    seed: int
    fuse: Fuse = field(default_factory=Fuse)  # of the worker's calls to the cluster
    pen: Fuse = field(default_factory=Fuse)  # of the agent's, to write down what it saw
    refused: int = 0
    killed: int = 0
    agents_killed: int = 0
    patience_s: float = PATIENCE_S
    jumps: Jumps = field(default_factory=Jumps)
    unexpected: list[str] = field(default_factory=list)  # what a fault should not have led to
    strange: dict[str, str] = field(
        default_factory=dict
    )  # what is not ours but has our names: paths, and uids of namespace and object
    backup: tuple[Path, float] | None = None  # of the whole cluster, and when it was made
    set_back_at: float = float("-inf")  # when it was restored last
    numbers: int = 0  # volumes made
    claims: dict[str, tuple[str, str, str]] = field(
        default_factory=dict
    )  # by volume: namespace, its uid, and the claim's, as they were when somebody looked last

    mute: dict[str, float] = field(
        default_factory=dict
    )  # nodes that cannot be heard, or all of it; and leases, or all of it, by our books: since when
    _silences: list[Silence] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.stack = ExitStack()

    def __enter__(self) -> Self:
        self.standing = self.stack.enter_context(clock.standing_at(self.jumps.now))
        self.stack.enter_context(_milliseconds_of(self.jumps))
        self.life = Life(self.standing)
        self.stack.enter_context(doorbell.heard_by(self.life.hear))
        self.proxy = self.stack.enter_context(Later(self.plane, self.jumps))
        self._keep_calls_short()
        install(self.plane.api, PLUGIN)
        for each in STRANGERS:
            self.plane.api.apply(each)
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
        self._take_inventory()
        catalogue.derive_offerings(now=self.life.now)
        Offering.objects.filter(state=OfferingState.DRAFT).update(state=OfferingState.PUBLISHED)
        prices.publish_all(since=self.life.now - timedelta(hours=1), actor=OPERATOR, now=self.life.now)
        self.homes = [home(name, units=UNITS) for name in ("Kestrel", "Merlin", "Osprey")]
        for each in self.homes:
            each.quota(QuotaKind.GPU_SECONDS, ENDLESS)
        self.offerings = {
            each.profile: each
            for each in Offering.objects.filter(price_class="on_demand", profile__in=("1g.10gb", "card"))
        }
        self._sweep_at = self._sweep_all_at = self._agent_at = 0.0
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()
        clusters._of_cluster.cache_clear()

    def _take_inventory(self) -> None:
        """Know the nodes, however long a busy machine takes to tell of them."""
        for _ in range(120):
            self.agent.turn(0.5)
            self.agent._take_inventory(self.life.now)
            if self.cluster.nodes.count() == len(self.names):
                return
        raise AssertionError("the cluster never told its nodes")

    def falls_silent(self, node: str = EVERYWHERE) -> None:
        self.mute.setdefault(node, time.time())

    def speaks(self, node: str = EVERYWHERE) -> None:
        if since := self.mute.pop(node, None):
            self._silences.append(Silence(node, Piece(since, time.time())))

    def silences(self) -> list[Silence]:
        """Return when something could not be heard, until now."""
        still = [Silence(node, Piece(since, time.time())) for node, since in self.mute.items()]
        return [*self._silences, *still]

    def wonder(self, what: str) -> None:
        """Note what should not be."""
        print(f"unexpected: {what}", flush=True)
        self.unexpected.append(what)

    def ask(self, image: str, profile: str, *, owner: Home | None = None, **wanted: Any) -> None:
        """Let somebody ask for a lease; what quotas refuse is counted."""
        try:
            self.people.ask(owner or self.some_home(), self.offerings[profile], image=image, **wanted)
        except Refused:
            self.refused += 1

    @property
    def people(self) -> Life:
        """What people do: now, and not when the last task began, which may be seconds ago."""
        self._now()
        return self.life

    def some_home(self) -> Home:
        return self.chance.choice(self.homes)

    def leases(self, *states: str) -> list[Lease]:
        """Return leases, all or those in some states, in an order that does not change."""
        with as_sweep():
            found = Lease.objects.select_related("offering").order_by("id")
            return list(found.filter(state__in=states) if states else found)

    def turn(self) -> None:
        """Let a moment pass: the worker does what is rung for, beat sweeps, the agent writes what it saw."""
        self._now()
        try:
            moment = clock.monotonic()
            if moment >= self._agent_at:
                self._agent_at = moment + AGENT_S
                if not self.agent.frozen:
                    self.agent.turn(0.005)
            self._do(self._rung())
            if moment >= self._sweep_at:
                self._sweep_at = moment + SWEEP_S
                knocking.knock(self.cluster.pk, now=self._now())
                now = self._now()
                self._do((*reconcile.due(now=now), *stepping.due(now=now), *keeping.due(now=now)))
            if moment >= self._sweep_all_at:
                self._sweep_all_at = moment + SWEEP_ALL_S
                self._do(reconcile.all_live())
                orphans.remove_all(now=self._now())
        except AgentKilled:
            self.agents_killed += 1
            self.kill_agent()
        except Killed:
            self.killed += 1
            self.fuse.calls = 0
            clusters._of_cluster.cache_clear()  # the next process knows nothing
        self._read_who_is_silent()

    def _read_who_is_silent(self) -> None:
        """Take note of what our books call silent, and since when: faults make it so that no disaster told of."""
        since = {BY_THE_BOOKS: Cluster.objects.values_list("silent_since", flat=True).get(pk=self.cluster.pk)}
        with as_sweep():
            unheard = Lease.objects.filter(state="active", conditions__has_key=Condition.UNREACHABLE)
            since |= dict(unheard.values_list("id", "seen_at"))
        for what, moment in since.items():
            if moment is not None:
                self.mute.setdefault(what, self.jumps.real(moment).timestamp())
        for what in [each for each in self.mute if each.startswith(OUR_WORD) and since.get(each) is None]:
            self.speaks(what)

    def _now(self) -> datetime:
        """Read the clock, as every task does when it begins."""
        self.standing.at = max(self.standing.at, self.jumps.now)
        return self.standing.at

    def _rung(self) -> Iterator[Hint]:
        """Yield what was rung for until this moment; what that rings for waits for the next turn."""
        until = self._now()
        while self.life.hints and self.life.hints[0][0] <= until:
            yield heapq.heappop(self.life.hints)[2:]

    def _do(self, hints: Iterable[Hint]) -> None:
        for hint in hints:
            if hint[0] == "broker.sweep_all":
                self._do(reconcile.all_live())
                orphans.remove_all(now=self._now())
            else:
                work(*hint, now=self._now())

    def out(self, turns: int) -> None:
        """Let a few moments pass in which nobody answers."""
        self.patience_s = IN_OUTAGES_S
        for _ in range(turns):
            self.turn()
        self.patience_s = PATIENCE_S

    def later(self, length: timedelta, *, thoroughly: bool = True) -> None:
        """Let so much time pass at once; the beat comes right after it."""
        self.proxy.silent_until = 0.0
        self._hear_out()  # what was seen before is known from before
        self.jumps.jump(length)
        self._sweep_at = self._agent_at = 0.0
        if thoroughly:
            self._sweep_all_at = 0.0
        self.turn()

    def _hear_out(self) -> None:
        self._now()
        lives_for, self.pen.calls = self.pen.calls, 0
        with suppress(Killed):
            while not self.agent.frozen and (found := self.agent.waiting.batch(0.0)):
                self.agent.absorb(found, now=self.standing.at)
        self.pen.calls = lives_for

    def kill_agent(self) -> None:
        """Let another agent take over, which knows nothing."""
        self.pen.calls = 0
        self._stop_agent()
        self._start_agent()

    def forget(self) -> None:
        """Let new processes take over from all that work on the cluster."""
        self.kill_agent()
        clusters._of_cluster.cache_clear()

    def _start_agent(self) -> None:
        self.agent, self._over = Agent(self.cluster), Event()
        going = self._over
        self.agent.start(lambda: not going.is_set())

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

        def shortly(way: transport.Transport, seconds: float = transport.ANSWER_S) -> Api:
            follows = current_thread() is not main_thread()  # a reflector, which nobody waits for
            return within(way, seconds if follows else min(seconds, self.patience_s))

        note, pen = sightings.note, self.pen

        def noted(cluster: Cluster, seen: list[Any], **how: Any) -> int:
            writes = bool(seen or how.get("reached"))
            pen.calls -= writes
            dies = writes and pen.calls == 0
            if dies and not pen.after:
                raise AgentKilled
            told = note(cluster, seen, **how)
            if dies:
                raise AgentKilled
            return told

        Api.send = send  # type: ignore[method-assign]
        sightings.note = noted
        transport.Transport.within = shortly  # type: ignore[method-assign]
        transport.SILENCE_S = 20.0

        def undo() -> None:
            Api.send = real  # type: ignore[method-assign]
            sightings.note = note
            transport.Transport.within = within  # type: ignore[method-assign]
            transport.SILENCE_S = silence

        self.stack.callback(undo)


@contextmanager
def _milliseconds_of(jumps: Jumps) -> Iterator[None]:
    """Let the host's wall clock jump with ours: by it an agent tells how long a pulse was on its way."""
    real = clock.milliseconds
    clock.milliseconds = lambda: real() + round(jumps.ahead.total_seconds() * 1000)
    try:
        yield
    finally:
        clock.milliseconds = real
