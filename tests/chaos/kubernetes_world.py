"""A small installation on a real control plane, stepped by a test."""

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

from billing.services.demo.seed import seed_prices
from broker.domain.lifecycle.states import LeaseCondition
from broker.domain.repartition.gpu_layouts import WHOLE_GPU_LAYOUT, GpuLayout
from broker.domain.repartition.mig_configs import layout_alias, layout_name
from broker.models import Cluster, Lease, Offering, OfferingState
from broker.provisioners.kubernetes.client import transport
from broker.provisioners.kubernetes.client.transport import ApiResponse, KubernetesApi
from broker.services.clusters import orphan_removal
from broker.services.clusters.agent.cluster_agent import ClusterAgent
from broker.services.clusters.health import health_probe
from broker.services.clusters.observed import observed_objects
from broker.services.clusters.registration import cluster_registration
from broker.services.inventory import cluster_provisioners, gpu_catalogue
from broker.services.reconciler import lease_reconciler
from broker.services.repartition import repartition_reconciler
from broker.services.volumes import volume_lifecycle
from ports import clock, outbox
from tenants.models import QuotaKind
from tenants.services.errors import ProblemError
from tenants.services.rls import system_scope
from tests.chaos.kubernetes_spans import BY_THE_BOOKS, EVERYWHERE, OUR_WORD, Piece, Silence
from tests.chaos.kubernetes_time import Jumps, Later
from tests.cluster.installed import install
from tests.cluster.stages import PLUGIN
from tests.controlplane.api import Object
from tests.controlplane.nodes import GpuNode, Nodes
from tests.controlplane.plane import ControlPlane
from tests.simulation import OPERATOR, Simulation, TenantContext, create_tenant, run_task

IMAGE_THAT_RUNS = "registry.example/acts:hang-0s"
REGION, UNITS, ENDLESS = "eu-north", 12, 10**15
ONES = GpuLayout.from_names(["1g.10gb"] * 7)
# Two ways in which a node may be cut, and what its device plugin then reports.
MIXED, ONLY_ONES = {0: WHOLE_GPU_LAYOUT, 1: ONES, 2: ONES}, {0: ONES, 1: ONES, 2: ONES}
OFFERS = {
    name: offer
    for cuts, offer in (
        (MIXED, {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.10gb": 14}),
        (ONLY_ONES, {"nvidia.com/gpu": 0, "nvidia.com/mig-1g.10gb": 21}),
    )
    for name in (layout_name(cuts), layout_alias(layout_name(cuts)))
}
NODE = GpuNode(gpus=3, cut=2, mig={"1g.10gb": 14}, layouts=OFFERS)
NEIGHBOURS, URGENT = (
    "neighbours",
    "urgent",
)  # another department's namespace, and what its pods may push aside for
FOREIGN_OBJECTS: tuple[Object, ...] = (
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
    """Death of the worker, which no exception handler catches."""


class AgentKilled(Killed):
    """Death of the agent with all its state."""


@dataclass
class Fuse:
    """Kills the caller before or after one of the next calls."""

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
        self.standing = self.stack.enter_context(clock.frozen_at(self.jumps.now))
        self.stack.enter_context(_milliseconds_of(self.jumps))
        self.sim = Simulation(self.standing)
        self.stack.enter_context(outbox.captured(self.sim.record_message))
        self.proxy = self.stack.enter_context(Later(self.plane, self.jumps))
        self._keep_calls_short()
        install(self.plane.api, PLUGIN)
        for each in FOREIGN_OBJECTS:
            self.plane.api.apply(each)
        self.nodes = Nodes(self.plane.api, "chaos")
        self.names = self.nodes.add_many(3, NODE)
        gpu_catalogue.load_gpu_models()
        self.cluster: Cluster = cluster_registration.register_cluster(
            name="chaos",
            region=REGION,
            kubeconfig=self.proxy.kubeconfig,
            driver="device_plugin",
            actor=OPERATOR,
            now=self.sim.now,
        )
        self.began = self.sim.now
        self._start_agent()
        self.stack.callback(self._stop_agent)
        self._take_inventory()
        gpu_catalogue.derive_offerings(now=self.sim.now)
        Offering.objects.filter(state=OfferingState.DRAFT).update(state=OfferingState.PUBLISHED)
        seed_prices.publish_list_prices(since=self.sim.now - timedelta(hours=1), actor=OPERATOR, now=self.sim.now)
        self.homes = [create_tenant(name, units=UNITS) for name in ("Kestrel", "Merlin", "Osprey")]
        for each in self.homes:
            each.set_quota(QuotaKind.GPU_SECONDS, ENDLESS)
        self.offerings = {
            each.profile: each
            for each in Offering.objects.filter(price_class="on_demand", profile__in=("1g.10gb", "whole-gpu"))
        }
        self._sweep_at = self._sweep_all_at = self._agent_at = 0.0
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()
        cluster_provisioners._load_for_cluster.cache_clear()

    def _take_inventory(self) -> None:
        """Update the inventory until all nodes are known."""
        for _ in range(120):
            self.agent.run_turn(0.5)
            self.agent.take_inventory(now=self.sim.now)
            if self.cluster.nodes.count() == len(self.names):
                return
        raise AssertionError("the cluster never told its nodes")

    def falls_silent(self, node: str = EVERYWHERE) -> None:
        self.mute.setdefault(node, time.time())

    def speaks(self, node: str = EVERYWHERE) -> None:
        if since := self.mute.pop(node, None):
            self._silences.append(Silence(node, Piece(since, time.time())))

    def silences(self) -> list[Silence]:
        """Return the spans without contact, until now."""
        still = [Silence(node, Piece(since, time.time())) for node, since in self.mute.items()]
        return [*self._silences, *still]

    def wonder(self, what: str) -> None:
        """Record an unexpected fact."""
        print(f"unexpected: {what}", flush=True)
        self.unexpected.append(what)

    def ask(self, image: str, profile: str, *, owner: TenantContext | None = None, **wanted: Any) -> None:
        """Request a lease as a tenant; count refusals by quotas."""
        try:
            self.people.request_lease(owner or self.some_home(), self.offerings[profile], image=image, **wanted)
        except ProblemError:
            self.refused += 1

    @property
    def people(self) -> Simulation:
        """Run a user's action at the current time."""
        self._now()
        return self.sim

    def some_home(self) -> TenantContext:
        return self.chance.choice(self.homes)

    def leases(self, *states: str) -> list[Lease]:
        """Return all leases, or those in some states, in a stable order."""
        with system_scope():
            found = Lease.objects.select_related("offering").order_by("id")
            return list(found.filter(state__in=states) if states else found)

    def turn(self) -> None:
        """Run worker, sweeps and agent once."""
        self._now()
        try:
            moment = clock.monotonic()
            if moment >= self._agent_at:
                self._agent_at = moment + AGENT_S
                if not self.agent.frozen:
                    self.agent.run_turn(0.005)
            self._do(self._due_messages())
            if moment >= self._sweep_at:
                self._sweep_at = moment + SWEEP_S
                health_probe.probe_cluster(self.cluster.pk, now=self._now())
                now = self._now()
                self._do(
                    (
                        *lease_reconciler.due_messages(now=now),
                        *repartition_reconciler.due_repartitions(now=now),
                        *volume_lifecycle.due_volumes(now=now),
                    )
                )
            if moment >= self._sweep_all_at:
                self._sweep_all_at = moment + SWEEP_ALL_S
                self._do(lease_reconciler.messages_for_all_live())
                orphan_removal.remove_orphans(now=self._now())
        except AgentKilled:
            self.agents_killed += 1
            self.kill_agent()
        except Killed:
            self.killed += 1
            self.fuse.calls = 0
            cluster_provisioners._load_for_cluster.cache_clear()  # the next process knows nothing
        self._read_who_is_silent()

    def _read_who_is_silent(self) -> None:
        """Record nodes and clusters without contact, with their start."""
        since = {BY_THE_BOOKS: Cluster.objects.values_list("unreachable_since", flat=True).get(pk=self.cluster.pk)}
        with system_scope():
            unheard = Lease.objects.filter(state="active", conditions__has_key=LeaseCondition.UNREACHABLE)
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

    def _due_messages(self) -> Iterator[Hint]:
        """Yield the messages due now; new ones wait."""
        until = self._now()
        while self.sim.messages and self.sim.messages[0][0] <= until:
            yield heapq.heappop(self.sim.messages)[2:]

    def _do(self, hints: Iterable[Hint]) -> None:
        for hint in hints:
            if hint[0] == "broker.sweep_all":
                self._do(lease_reconciler.messages_for_all_live())
                orphan_removal.remove_orphans(now=self._now())
            else:
                run_task(*hint, now=self._now())

    def out(self, turns: int) -> None:
        """Run some rounds in which the cluster does not answer."""
        self.patience_s = IN_OUTAGES_S
        for _ in range(turns):
            self.turn()
        self.patience_s = PATIENCE_S

    def later(self, length: timedelta, *, thoroughly: bool = True) -> None:
        """Advance the clock; periodic tasks run right afterwards."""
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
            while not self.agent.frozen and (found := self.agent.events.batch(0.0)):
                self.agent.absorb(found, now=self.standing.at)
        self.pen.calls = lives_for

    def kill_agent(self) -> None:
        """Replace the agent with a new one without state."""
        self.pen.calls = 0
        self._stop_agent()
        self._start_agent()

    def forget(self) -> None:
        """Replace all processes that work on the cluster."""
        self.kill_agent()
        cluster_provisioners._load_for_cluster.cache_clear()

    def _start_agent(self) -> None:
        self.agent, self._over = ClusterAgent(self.cluster), Event()
        going = self._over
        self.agent.start(lambda: not going.is_set())

    def _stop_agent(self) -> None:
        self._over.set()

    def _keep_calls_short(self) -> None:
        """Use short timeouts, and pass each call through the fuse."""
        real, within, silence = KubernetesApi.send, transport.Transport.within, transport.WATCH_SILENCE_S
        fuse = self.fuse

        def send(api: KubernetesApi, *what: Any, **how: Any) -> ApiResponse:
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

        def shortly(way: transport.Transport, seconds: float = transport.RESPONSE_S) -> KubernetesApi:
            follows = current_thread() is not main_thread()  # a reflector, which nobody waits for
            return within(way, seconds if follows else min(seconds, self.patience_s))

        note, pen = observed_objects.record_observed, self.pen

        def noted(cluster: Cluster, seen: list[Any], **how: Any) -> int:
            writes = bool(seen or how.get("reached"))
            pen.calls -= writes
            dies = writes and pen.calls == 0
            if dies and not pen.after:
                raise AgentKilled
            found = note(cluster, seen, **how)
            if dies:
                raise AgentKilled
            return found

        KubernetesApi.send = send  # type: ignore[method-assign]
        observed_objects.record_observed = noted
        transport.Transport.within = shortly  # type: ignore[method-assign]
        transport.WATCH_SILENCE_S = 20.0

        def undo() -> None:
            KubernetesApi.send = real  # type: ignore[method-assign]
            observed_objects.record_observed = note
            transport.Transport.within = within  # type: ignore[method-assign]
            transport.WATCH_SILENCE_S = silence

        self.stack.callback(undo)


@contextmanager
def _milliseconds_of(jumps: Jumps) -> Iterator[None]:
    """Shift the host's clock with the product's, for heartbeats."""
    real = clock.milliseconds
    clock.milliseconds = lambda: real() + round(jumps.ahead.total_seconds() * 1000)
    try:
        yield
    finally:
        clock.milliseconds = real
