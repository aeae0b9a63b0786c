"""Random runs on the real services and database, from one seed.

Hints are dropped, doubled and taken in any order; workers die before and after what they do, are overtaken while
they work, or act on what they read long ago; nodes, GPUs and pods are lost; quotas come and go; time jumps. Then the
calm comes, and everything must come to rest.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta

from django.db.models.functions import Coalesce

from broker.domain.lifecycle.states import EndReason
from broker.models import Gpu, GpuHealth, Lease, Node, NodeState, SimulatedPod
from broker.services.inventory import cluster_provisioners, hardware
from broker.services.inventory.hardware import SimulatedRack
from broker.services.leases.lease_requests import LeaseRequest, request_lease
from broker.services.leases.lifecycle import extension, termination
from broker.services.placement import available_capacity
from broker.services.queue.starvation_guard import MAX_WAIT
from broker.services.reconciler import lease_reconciler
from ports import clock, ids, outbox
from ports.clock import SettableClock
from ports.rng import Rng
from tenants.models import Quota, QuotaKind
from tenants.services import quotas
from tenants.services.errors import ProblemError
from tenants.services.rls import system_scope, tenant_scope
from tests.sim.faults import Crash, Faults, FaultyCluster, lose_a_pod
from tests.sim.invariants import Watch, at_rest, orphans
from tests.simulation import MODEL, NOW, OPERATOR, REGION, create_fleet, create_tenant, offering, run_task

A_WHILE = timedelta(seconds=300)  # longer than the slowest pull takes without faults
Hint = tuple[datetime, str, str, str]
PROFILES = ("1g.10gb", "1g.10gb", "3g.40gb", "whole-gpu")
IMAGES = ("", "", "", "slow/image", "refuse/image")


class Sim:
    """A random run from one seed."""

    profiles: tuple[str, ...] = PROFILES
    lasts = (60, 900)  # seconds that are asked for
    moves = False  # whether tenants let their leases be moved
    spot = False  # whether half of the leases are spot leases

    def __init__(self, seed: int, clock: SettableClock) -> None:
        self.chance, self.clock = Rng(seed), clock
        self.faults = Faults(self.chance)
        self.watch = Watch(self.faults.known)
        self.hints: list[Hint] = []
        self.did: Counter[str] = Counter()
        self.acknowledged: set[str] = set()
        self.read: list[Lease] = []  # what somebody read a while ago, and acts on only now
        self.depth = 0
        create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=2))
        self.homes = [create_tenant("Kestrel", units=20), create_tenant("Swift", units=20)]
        for each in self.homes:
            each.set_quota(QuotaKind.GPU_SECONDS, 10**12)
        self.projects = {each: (each.project, each.create_project("team")) for each in self.homes}
        self.offerings = {name: offering(name) for name in set(self.profiles)}
        self.spot_offerings = {name: offering(name, price_class="spot") for name in set(self.profiles)}
        acts: list[tuple[int, Callable[[], None]]] = [
            (10, self.ask),
            (40, self.take_a_hint),
            (12, self.time_passes),
            (8, self.sweep),
            (2, self.sweep_all),
            (5, self.release),
            (2, self.extend),
            (2, self.tick),
            (1, self.quota_changes),
            (2, self.node_changes),
            (1, self.gpu_changes),
            (1, self.pod_vanishes),
        ]
        self.acts = [act for weight, act in acts for _ in range(weight)]

    def pick(self, things: "list[object] | tuple[object, ...]") -> object:
        return things[int(self.chance.uniform(0, len(things)))]

    def step(self) -> None:
        """Run one random action, which may crash."""
        act: Callable[[], None] = self.pick(self.acts)  # type: ignore[assignment]
        self.live_through(act)

    def live_through(self, act: Callable[..., None], *known: str) -> None:
        self.did[act.__name__] += 1
        if not self.depth:
            self.faults.answered.clear()
        try:
            act(*known)
        except (Crash, ProblemError) as stopped:
            self.did[type(stopped).__name__] += 1
            if isinstance(stopped, Crash):  # it knows nothing of what it made
                self.faults.known -= self.faults.answered

    def meanwhile(self, lease_id: str) -> None:
        """Run something else while a worker waits for the cluster."""
        if self.depth < 2:
            self.depth += 1
            try:
                if self.chance.below(0.3):
                    self.live_through(self.overtake, lease_id)
                else:
                    self.step()
            finally:
                self.depth -= 1

    def overtake(self, lease_id: str) -> None:
        """Let a worker's claim expire, and let another worker end the lease."""
        with system_scope():
            tenant_id = Lease.objects.values_list("tenant_id", flat=True).get(pk=lease_id)
        with tenant_scope(tenant_id):
            lease = Lease.objects.select_related("offering").get(pk=lease_id)
            termination.release_lease(lease, reason=EndReason.BY_TENANT, now=self.clock.at)
        for _ in range(2):
            self.clock.at += timedelta(seconds=self.chance.uniform(21, 40))
            run_task("broker.reconcile_lease", lease_id, tenant_id, now=self.clock.at)

    def hear(self, task: str, subject: str, tenant_id: str, at: datetime) -> None:
        if self.faults.strike("crash_before"):
            raise Crash("before the commit")
        if self.faults.strike("drop"):
            return
        self.hints += [(at, task, subject, tenant_id)] * (2 if self.faults.strike("double") else 1)

    def ask(self) -> None:
        owner = self.homes[int(self.chance.uniform(0, 2))]
        profile = str(self.pick(self.profiles))
        wanted = LeaseRequest(
            offering_id=self.offerings[profile].pk,
            name=f"job-{len(self.acknowledged)}",
            max_duration_s=int(self.chance.uniform(*self.lasts)),
            quantity=2 if self.chance.below(0.2) else 1,
            same_node=self.chance.below(0.5),
            image=str(self.pick(IMAGES)),
            end_date=self.clock.at + timedelta(seconds=120) if self.chance.below(0.1) else None,
            relocatable=self.moves and self.chance.below(0.8),
        )
        if self.spot and self.chance.below(0.5):
            again = self.chance.below(0.5)
            wanted = replace(wanted, offering_id=self.spot_offerings[profile].pk, requeue_when_preempted=again)
        if wanted.quantity > 1:  # several together stay where they are
            wanted = replace(wanted, relocatable=False)
        with tenant_scope(owner.tenant.pk):
            project = self.projects[owner][self.chance.below(0.5)]
            lease = request_lease(wanted, project=project, actor=owner.actor, now=self.clock.at)
        self.acknowledged.add(lease.pk)

    def take_a_hint(self) -> None:
        """Process any due message, in random order."""
        ready = [hint for hint in self.hints if hint[0] <= self.clock.at]
        if not ready:
            self.clock.at += timedelta(seconds=0.5)
            return
        hint: Hint = self.pick(ready)  # type: ignore[assignment,arg-type]
        self.hints.remove(hint)
        # A worker may have read its clock a little before others acted.
        run_task(*hint[1:], now=self.clock.at - timedelta(seconds=self.chance.uniform(0, 0.3)))

    def time_passes(self) -> None:
        seconds = self.chance.uniform(60, 1800) if self.chance.below(0.05) else self.chance.uniform(0, 4)
        self.clock.at += timedelta(seconds=seconds)

    def sweep(self) -> None:
        """Run the periodic sweep; afterwards no lease is overdue."""
        before = self.clock.at
        overdue = due_at(before)
        for hint in lease_reconciler.due_messages(now=before):
            run_task(*hint, now=self.clock.at)
        assert not overdue & due_at(before), "a lease was due, and the sweep passed it by"

    def sweep_all(self) -> None:
        """Run the full sweep; afterwards no pod is without a lease."""
        run_task("broker.sweep_all", "", "", now=self.clock.at)
        running = set(SimulatedPod.objects.filter(gone_at=None).values_list("name", flat=True))
        assert not running & set(orphans()), "the great sweep left an orphan running"

    def some_lease(self) -> Lease | None:
        """Read a live lease, perhaps an outdated copy."""
        if self.read and not self.faults.calm and self.chance.below(0.4):
            return self.read.pop(int(self.chance.uniform(0, len(self.read))))
        with system_scope():
            live = sorted(Lease.objects.live().values_list("id", "tenant_id"))
        if not live:
            return None
        lease_id, tenant_id = self.pick(live)  # type: ignore[misc,arg-type]
        with tenant_scope(tenant_id):
            both = [Lease.objects.select_related("offering", "project").get(pk=lease_id) for _ in range(2)]
        self.read = [*self.read, both[1]][-8:]
        return both[0]

    def release(self) -> None:
        if lease := self.some_lease():
            with tenant_scope(lease.tenant_id):
                termination.release_lease(lease, reason=EndReason.BY_TENANT, now=self.clock.at)

    def extend(self) -> None:
        if lease := self.some_lease():
            with tenant_scope(lease.tenant_id):
                extension.extend_lease(lease, more_s=120, actor=OPERATOR, now=self.clock.at)

    def tick(self) -> None:
        if lease := self.some_lease():
            with tenant_scope(lease.tenant_id):
                lease.add_metering_tick(at=(lease.seen_at or self.clock.at).replace(microsecond=0))

    def quota_changes(self) -> None:
        """Set, change or delete a quota of a project."""
        owner = self.homes[int(self.chance.uniform(0, 2))]
        team, kind = self.projects[owner][1], QuotaKind(str(self.pick(("units", "gpu_seconds"))))
        with tenant_scope(owner.tenant.pk):
            there = Quota.objects.select_related("project").filter(project=team, kind=kind).first()
            if there and self.chance.below(0.5):
                quotas.remove(there, actor=OPERATOR, now=self.clock.at)
            else:
                limit = int(self.chance.uniform(4, 20)) * (1000 if kind == QuotaKind.UNITS else 10**6)
                quotas.set_limit(project=team, kind=kind, limit=limit, actor=OPERATOR, now=self.clock.at)

    def node_changes(self) -> None:
        node = Node.objects.select_related("cluster").order_by("name")[int(self.chance.uniform(0, 2))]
        # Mostly back to ready, so that there is something to break.
        state = NodeState(str(self.pick(("ready", "ready", "ready", "cordoned", "lost"))))
        hardware.set_node_state(node, state, reason="sim", actor=OPERATOR, now=self.clock.at)

    def gpu_changes(self) -> None:
        gpu = Gpu.objects.select_related("node__cluster").order_by("uuid")[int(self.chance.uniform(0, 4))]
        health = GpuHealth(str(self.pick(("healthy", "healthy", "unhealthy"))))
        hardware.set_gpu_health(gpu, health, reason="sim", actor=OPERATOR, now=self.clock.at)
        hardware.set_gpu_lost(gpu, health is GpuHealth.UNHEALTHY, now=self.clock.at)

    def pod_vanishes(self) -> None:
        lose_a_pod(self.chance)

    def mend(self) -> None:
        """Stop the faults, and repair all nodes and GPUs."""
        self.faults.calm = True
        for node in Node.objects.select_related("cluster").order_by("name"):
            hardware.set_node_state(node, NodeState.READY, reason="calm", actor=OPERATOR, now=self.clock.at)
        for gpu in Gpu.objects.select_related("node__cluster").order_by("uuid"):
            hardware.set_gpu_health(gpu, GpuHealth.HEALTHY, reason="calm", actor=OPERATOR, now=self.clock.at)

    def run_calm(self, seconds: int) -> None:
        """Let time pass without faults, with regular sweeps."""
        for tick in range(seconds // 5):
            self.clock.at += timedelta(seconds=5)
            while ready := sorted(hint for hint in self.hints if hint[0] <= self.clock.at):
                self.hints.remove(ready[0])
                run_task(*ready[0][1:], now=self.clock.at)
            self.sweep()
            if tick % 12 == 0:
                self.sweep_all()
                self.watch.check(now=self.clock.at)


@contextmanager
def simulated(seed: int, kind: "type[Sim] | None" = None) -> Iterator[Sim]:
    """Create a run whose time, ids, messages and cluster depend on the seed."""
    with clock.frozen_at(NOW) as standing, ids.reproducible_ids(f"sim {seed}"):
        sim = (kind or Sim)(seed, standing)
        cluster = FaultyCluster(sim.faults, sim.meanwhile)
        before, cluster_provisioners.shared_provisioner = (
            cluster_provisioners.shared_provisioner,
            lambda: cluster,
        )
        try:
            with outbox.captured(sim.hear):
                yield sim
        finally:
            cluster_provisioners.shared_provisioner = before


def live_and_rest(sim: Sim, *, steps: int) -> None:
    """Run steps with faults, then without, and check all invariants."""
    for _ in range(steps):
        sim.step()
        sim.watch.check(now=sim.clock.at)
    with system_scope():
        assert sim.acknowledged <= set(Lease.objects.values_list("id", flat=True)), "acknowledged, then lost"
    sim.mend()
    sim.run_calm(600)
    assert orphans() == []
    _all_settled(sim)
    _nobody_waits_for_what_is_free(sim)
    with system_scope():
        left = list(Lease.objects.live().values_list("id", "tenant_id"))
    for lease_id, tenant_id in left:
        with tenant_scope(tenant_id):
            lease = Lease.objects.select_related("offering").get(pk=lease_id)
            termination.release_lease(lease, reason=EndReason.BY_TENANT, now=sim.clock.at)
    sim.run_calm(300)
    assert at_rest() == []


def due_at(moment: datetime) -> set[str]:
    """Return the leases that are overdue and unclaimed."""
    with system_scope():
        idle = Lease.objects.filter(due_at__lte=moment).exclude(claimed_until__gte=moment)
        return set(idle.values_list("id", flat=True))


def _all_settled(sim: Sim) -> None:
    with system_scope():
        settled = Lease.objects.filter(state__in=["active", "stopped", "released", "queued"])
        overdue = Lease.objects.filter(state_since__lt=sim.clock.at - A_WHILE).exclude(pk__in=settled)
        assert [f"{lease.pk} is {lease.state}" for lease in overdue] == []


def _nobody_waits_for_what_is_free(sim: Sim) -> None:
    with system_scope():
        queue = Lease.objects.filter(state="queued").order_by(Coalesce("requeued_at", "created_at"), "id")
        queued = list(queue.values_list("id", "tenant_id"))
    overdue = False
    for lease_id, tenant_id in queued:
        with tenant_scope(tenant_id):
            lease = Lease.objects.select_related("offering").get(pk=lease_id)
            assert lease.pending_reason
            overdue = overdue or sim.clock.at - lease.queues_since > MAX_WAIT
            if overdue and lease.pending_reason.startswith("Waits behind"):
                continue  # GPUs are kept for it, or all who are younger wait
            fits = available_capacity.preview_placement(
                lease.offering, quantity=lease.quantity, same_node=lease.same_node
            )
        assert fits is None, f"{lease} waits for what is free: {lease.pending_reason}"
