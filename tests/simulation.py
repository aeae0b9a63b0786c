"""Simulate a fleet, tenants, leases, time and workers for tests.

def test_…(sim: Simulation) -> None:
    create_fleet(SimulatedRack("north-1", "eu-north", "H100-80GB", nodes=1))
    kestrel = create_tenant("Kestrel")
    lease = sim.create_lease(kestrel, offering("1g.10gb"), LeaseState.ACTIVE)
"""

import heapq
import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.test import override_settings

from billing.services.payments import payment_collection
from billing.services.payments.topups import topup_collection as topping
from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME
from broker.domain.geometry.host_resources import HostResources
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import (
    Allocation,
    Gpu,
    GpuHealth,
    Lease,
    Node,
    NodeState,
    Offering,
    OfferingState,
    Transition,
    Volume,
)
from broker.services.clusters import image_prepulls, orphan_removal
from broker.services.inventory import gpu_catalogue, hardware
from broker.services.inventory.hardware import SIMULATED_CPU_NODE, SimulatedRack
from broker.services.leases import abandoned_placements, checkpoints, project_archive
from broker.services.leases.lease_requests import LeaseRequest, request_lease
from broker.services.leases.lifecycle import stop_and_start, termination
from broker.services.queue import queue_scheduling, spot_reclaims
from broker.services.reconciler import lease_reconciler
from broker.services.relocation import plan_proposals
from broker.services.relocation import plan_reconciler as moving
from broker.services.repartition import repartition_planner, repartition_reconciler
from broker.services.volumes import volume_lifecycle
from ports import clock, ids, outbox
from tenants.domain.roles import Role
from tenants.models import Member, Project, Quota, QuotaKind, ServiceAccount, Tenant, User
from tenants.services import projects, tenants, tokens
from tenants.services.actors import Actor
from tenants.services.rls import system_scope, tenant_scope

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
OPERATOR = Actor("staff", "usr_operator", "operator@example.org")
MODEL, REGION = "H100-80GB", "eu-north"
ONE_NODE = SimulatedRack("north-1", REGION, MODEL, nodes=1)
_numbers = itertools.count(1)
SETTLED = """
SELECT coalesce((SELECT max(xid) FROM broker_transition), 0) < coalesce(
         min(open.xid::text::bigint), pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
  FROM pg_snapshot_xip(pg_current_snapshot()) AS open (xid)
 WHERE NOT EXISTS (
       SELECT FROM pg_locks held JOIN pg_stat_activity holder ON holder.pid = held.pid
        WHERE held.locktype = 'transactionid' AND held.mode = 'ExclusiveLock' AND held.granted
          AND held.transactionid = open.xid::xid
          AND holder.datid <> (SELECT oid FROM pg_database WHERE datname = current_database()))
"""


def create_fleet(*racks: SimulatedRack, now: datetime = NOW) -> None:
    """Create racks and publish all their offerings."""
    gpu_catalogue.load_gpu_models()
    hardware.add_simulated_racks(racks or (ONE_NODE,), now=now)
    gpu_catalogue.derive_offerings(now=now)
    Offering.objects.filter(state=OfferingState.DRAFT).update(state=OfferingState.PUBLISHED)


def create_gpus(count: int, *, model: str = MODEL, region: str = REGION) -> None:
    """Set up one node with that many GPUs."""
    create_fleet(SimulatedRack("north-1", region, model, nodes=1, gpus_per_node=count))


def create_cpu_nodes(nodes: int = 1, *, name: str = "cpu-1", cpu_node: HostResources = SIMULATED_CPU_NODE) -> None:
    """Set up nodes without GPUs, and publish their offerings."""
    create_fleet(SimulatedRack(name, REGION, CPU_MODEL_NAME, nodes=nodes, cpu_node=cpu_node))


def offering(profile: str = "1g.10gb", *, price_class: str = "on_demand", model: str = MODEL) -> Offering:
    return Offering.objects.select_related("gpu_model").get(gpu_model=model, profile=profile, price_class=price_class)


def soft_offering(profile: str = "quarter", *, isolation: str = "soft", model: str = MODEL) -> Offering:
    """Create an offering of a shared GPU."""
    return Offering.objects.create(
        gpu_model_id=model,
        profile=profile,
        isolation=isolation,
        price_class="on_demand",
        region=REGION,
        label=f"H100 {profile}",
        milli_units=1750,
        memory_gb=20,
        state=OfferingState.PUBLISHED,
        created_at=NOW,
    )


@dataclass(frozen=True)
class TenantContext:
    """A tenant with its root project and an acting user."""

    tenant: Tenant
    project: Project
    actor: Actor

    def create_project(self, name: str, parent: Project | None = None) -> Project:
        with tenant_scope(self.tenant.pk):
            return projects.create(name=name, parent=parent or self.project, actor=self.actor, now=NOW)

    def set_quota(self, kind: QuotaKind, limit: int, project: Project | None = None) -> Quota:
        """Set a ceiling on a node of the tree."""
        with tenant_scope(self.tenant.pk):
            window = clock.month_start(clock.now()) if kind == QuotaKind.GPU_SECONDS else None
            quota, _ = Quota.objects.update_or_create(
                tenant=self.tenant,
                project=project or self.project,
                kind=kind,
                defaults={"limit": limit, "soft_limit": limit},
                create_defaults={"limit": limit, "soft_limit": limit, "window_start": window},
            )
            return quota

    def quota_used(self, kind: QuotaKind = QuotaKind.UNITS, project: Project | None = None) -> int:
        with tenant_scope(self.tenant.pk):
            return Quota.objects.get(project=project or self.project, kind=kind).used

    def create_member(self, role: Role, project: Project | None = None) -> User:
        user = User.objects.create_user(f"{role}-{next(_numbers)}@example.org")
        with tenant_scope(self.tenant.pk):
            Member.objects.create(tenant=self.tenant, user=user, role=role, project=project, created_at=NOW)
        return user

    def token(
        self, role: Role = Role.MEMBER, *, scopes: tuple[str, ...] = ("tenant:admin",), now: datetime = NOW
    ) -> str:
        """Return the text of a token of a new service account with this role."""
        with tenant_scope(self.tenant.pk):
            machine = ServiceAccount.objects.create(
                tenant=self.tenant, name=f"machine {next(_numbers)}", role=role, created_at=now
            )
            _, text = tokens.issue(
                tenant=self.tenant,
                name="test",
                scopes=scopes,
                expires_at=now + timedelta(days=30),
                actor=self.actor,
                now=now,
                service_account=machine,
            )
        return text


def create_tenant(name: str = "Kestrel", *, units: int = 1000) -> TenantContext:
    """Make a tenant that may hold that many compute slices at once."""
    actor = Actor("user", ids.new("usr"), f"mira@{name.lower()}.example")
    with tenant_scope(""):
        tenant, root = tenants.create(name=name, owner=None, actor=actor, now=NOW)
    made = TenantContext(tenant, root, actor)
    made.set_quota(QuotaKind.UNITS, units * 1000)
    return made


TENTH = timedelta(seconds=0.1)


@dataclass
class Simulation:
    """A test's clock, outbox and workers; messages run when due."""

    clock: clock.SettableClock
    messages: list[tuple[datetime, int, str, str, str]] = field(default_factory=list)
    _order: Iterator[int] = field(default_factory=itertools.count)

    @property
    def now(self) -> datetime:
        return self.clock.at

    def record_message(self, task: str, subject: str, tenant_id: str, at: datetime) -> None:
        heapq.heappush(self.messages, (at, next(self._order), task, subject, tenant_id))

    def run(self, seconds: float = 0) -> None:
        """Let time pass, and run every enqueued message at its time."""
        until = self.now + timedelta(seconds=seconds)
        while self.messages and self.messages[0][0] <= until:
            at, _, task, subject, tenant_id = heapq.heappop(self.messages)
            self.clock.at = max(self.now, at)
            run_task(task, subject, tenant_id, now=self.now)
        self.clock.at = until

    def _tenths_to_next_message(self) -> int:
        """Return how many tenths of a second pass until something happens, at least one."""
        if not self.messages:
            return 1
        return max(1, -((self.now - self.messages[0][0]) // TENTH))

    def run_with_sweeps(self, seconds: int) -> None:
        """Let time pass with the beat sweeping every five seconds."""
        for _ in range(seconds // 5):
            self.run(5)
            self.sweep()

    def sweep(self) -> None:
        """Do what the beat would have done now."""
        plans = (*repartition_reconciler.due_repartitions(now=self.now), *moving.due_plans(now=self.now))
        for hint in (
            *lease_reconciler.due_messages(now=self.now),
            *plans,
            *volume_lifecycle.due_volumes(now=self.now),
        ):
            run_task(*hint, now=self.now)
        self.run()

    def request_lease(
        self, owner: TenantContext, what: Offering, *, project: Project | None = None, **wanted: Any
    ) -> Lease:
        """Request a lease, and leave it in the queue."""
        values = {"name": f"job-{next(_numbers)}", "max_duration_s": 3600, **wanted}
        with tenant_scope(owner.tenant.pk):
            return request_lease(
                LeaseRequest(offering_id=what.pk, **values),
                project=project or owner.project,
                actor=owner.actor,
                now=self.now,
            )

    def create_lease(
        self, owner: TenantContext, what: Offering, state: LeaseState = LeaseState.ACTIVE, **wanted: Any
    ) -> Lease:
        """Return a lease that lived up to a state: queued, provisioning, active, releasing or released."""
        lease = self.request_lease(owner, what, **wanted)
        if state is LeaseState.QUEUED:
            return lease
        self.run()
        ends = self.now + timedelta(seconds=60)
        while self.now < ends:
            lease = reload_lease(lease)
            if lease.state == state:
                return lease
            if lease.state == LeaseState.ACTIVE:
                self.release_lease(lease)
                continue
            self.run(self._tenths_to_next_message() / 10)
        raise AssertionError(f"{lease.name} is {lease.state}, not {state}: {lease.pending_reason}")

    def create_volume(
        self, owner: TenantContext, name: str = "home", *, size_gib: int = 10, project: Project | None = None
    ) -> Volume:
        with tenant_scope(owner.tenant.pk):
            return volume_lifecycle.create_volume(
                project=project or owner.project,
                name=name,
                size_gib=size_gib,
                actor=owner.actor,
                now=self.now,
            )

    def stop_lease(self, lease: Lease, owner: TenantContext) -> None:
        with tenant_scope(lease.tenant_id):
            stop_and_start.stop_lease(reload_lease(lease), actor=owner.actor, now=self.now)

    def start_lease(self, lease: Lease, owner: TenantContext) -> Lease:
        with tenant_scope(lease.tenant_id):
            return stop_and_start.start_lease(reload_lease(lease), actor=owner.actor, now=self.now)

    def release_lease(self, lease: Lease, reason: EndReason = EndReason.BY_TENANT) -> None:
        with tenant_scope(lease.tenant_id):
            termination.release_lease(
                Lease.objects.select_related("offering").get(pk=lease.pk), reason=reason, now=self.now
            )


def run_task(task: str, subject: str, tenant_id: str, *, now: datetime) -> None:
    """Run the task of a message, as a worker does."""
    if task == "broker.reconcile_lease":
        lease_reconciler.reconcile_lease(subject, tenant_id, now=now)
    elif task == "broker.free_abandoned_placements":
        abandoned_placements.free_abandoned_placements(subject, tenant_id, now=now)
    elif task == project_archive.RELEASE_TASK:
        project_archive.release_waiting_leases(subject, tenant_id, now=now)
    elif task == "broker.reconcile_volume":
        volume_lifecycle.reconcile_volume(subject, tenant_id, now=now)
    elif task == "broker.run_queue":
        model, _, region = subject.partition("|")
        queue_scheduling.run_queue((model, region), now=now)
    elif task == "broker.reconcile_spot_reclaim":
        spot_reclaims.reconcile_spot_reclaim(subject, now=now)
    elif task == "broker.run_checkpoint":
        checkpoints.run_checkpoint(subject, tenant_id, now=now)
    elif task == "broker.plan_repartitions":
        repartition_planner.plan_and_approve(subject, now=now)
    elif task == "broker.reconcile_repartition":
        repartition_reconciler.reconcile_repartition(subject, now=now)
    elif task == "broker.plan_relocations":
        plan_proposals.propose_plans(subject, now=now)
    elif task == "broker.reconcile_relocation_plan":
        moving.reconcile_plan(subject, now=now)
    elif task == "broker.check_image_prepull":
        image_prepulls.check_image_prepull(subject, now=now)
    elif task == "broker.remove_orphans":
        orphan_removal.remove_orphans_in(subject, now=now)
    elif task == "broker.sweep_all":
        for hint in lease_reconciler.messages_for_all_live():
            run_task(*hint, now=now)
        orphan_removal.remove_orphans(now=now)
    elif task == "billing.top_up":
        topping.TOPUPS.collect(subject, tenant_id, now=now)
    elif task == "billing.collect":
        payment_collection.PAYMENTS.collect(subject, tenant_id, now=now)
    else:
        raise LookupError(f"nobody answers to {task}")


@contextmanager
def simulate(at: datetime = NOW, *, progress_s: float = 600) -> Iterator[Simulation]:
    """Freeze the clock, count ids and capture messages in a block.

    A pod that starts is not observed before its state changes: what a pull's percentages cost is most of a lease.
    """
    with ExitStack() as stack:
        stack.enter_context(override_settings(SIMULATED_PROGRESS_S=progress_s))
        stack.enter_context(ids.reproducible_ids("world"))
        sim = Simulation(stack.enter_context(clock.frozen_at(at)))
        stack.enter_context(outbox.captured(sim.record_message))
        yield sim


def reload_lease(lease: Lease) -> Lease:
    """Read a lease again."""
    with tenant_scope(lease.tenant_id):
        return Lease.objects.select_related("offering", "project").get(pk=lease.pk)


def transitions_of(lease: Lease) -> list[Transition]:
    with tenant_scope(lease.tenant_id):
        return list(Transition.objects.filter(lease_id=lease.pk).order_by("seq"))


def state_path(lease: Lease) -> str:
    """Write the states a lease went through: `requested queued provisioning active`."""
    return " ".join(step.after for step in transitions_of(lease))


def held_allocations(lease: Lease) -> list[Allocation]:
    """Return the current allocations of a lease."""
    with tenant_scope(lease.tenant_id):
        return list(
            Allocation.objects.filter(lease=lease, released_at=None, leaving_since=None).order_by("gpu", "placement")
        )


def wait_until_events_settled(within_s: float = 30) -> None:
    """Wait until no older transaction holds the newest event back."""
    ends = clock.monotonic() + within_s
    with connection.cursor() as cursor:
        while clock.monotonic() < ends:
            with system_scope():
                cursor.execute(SETTLED)
                if cursor.fetchone()[0]:
                    return
            clock.sleep(0.02)
    raise AssertionError("an older transaction still holds the newest event back")


def set_node_state(node: Node, state: NodeState, sim: Simulation) -> None:
    hardware.set_node_state(node, state, reason="a test", actor=OPERATOR, now=sim.now)


def lose_gpu(gpu: Gpu, sim: Simulation, *, reason: str = "XID 79") -> None:
    """Record what an inventory with a fatal fault of the GPU records."""
    hardware.set_gpu_health(gpu, GpuHealth.UNHEALTHY, reason=reason, actor=OPERATOR, now=sim.now)
    hardware.set_gpu_lost(gpu, True, now=sim.now)


def node_of(lease: Lease) -> Node:
    return Gpu.objects.select_related("node__cluster").get(pk=held_allocations(lease)[0].gpu_id).node
