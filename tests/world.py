"""A small world for tests: a fleet, tenants, leases in any state, and time that moves only when told to.

def test_…(life: Life) -> None:
    fleet(Rack("north-1", "eu-north", "H100-80GB", nodes=1))
    kestrel = home("Kestrel")
    lease = life.lease(kestrel, offering("1g.10gb"), LeaseState.ACTIVE)
"""

import heapq
import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection

from billing.services.payments import collecting
from billing.services.topups import collecting as topping
from broker.domain.states import EndReason, LeaseState
from broker.models import Allocation, Gpu, Lease, Node, NodeState, Offering, OfferingState, Transition, Volume
from broker.services import catalogue, inventory, orphans, reconcile
from broker.services.events import HORIZON
from broker.services.inventory import Rack
from broker.services.layouts import planning, stepping
from broker.services.leases import ending, leaving, serving, stopping
from broker.services.leases.request import Wanted, request
from broker.services.moving import proposing
from broker.services.moving import stepping as moving
from broker.services.volumes import keeping
from ports import clock, doorbell, ids
from tenants.domain.roles import Role
from tenants.models import Member, Project, Quota, QuotaKind, ServiceAccount, Tenant, User
from tenants.services import projects, tenants, tokens
from tenants.services.actors import Actor
from tenants.services.quotas import window_of
from tenants.services.walls import as_sweep, as_tenant

NOW = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
OPERATOR = Actor("staff", "usr_operator", "operator@example.org")
MODEL, REGION = "H100-80GB", "eu-north"
ONE_NODE = Rack("north-1", REGION, MODEL, nodes=1)
_numbers = itertools.count(1)
SETTLED = f"SELECT coalesce(max(xid), 0) < {HORIZON} FROM broker_transition"


def fleet(*racks: Rack, now: datetime = NOW) -> None:
    """Set up racks (one node of eight H100 unless told) and sell every shape they can take."""
    catalogue.load_gpu_models()
    inventory.add_simulated(racks or (ONE_NODE,), now=now)
    catalogue.derive_offerings(now=now)
    Offering.objects.filter(state=OfferingState.DRAFT).update(state=OfferingState.PUBLISHED)


def cards(count: int, *, model: str = MODEL, region: str = REGION) -> None:
    """Set up one node with that many cards."""
    fleet(Rack("north-1", region, model, nodes=1, cards_per_node=count))


def offering(profile: str = "1g.10gb", *, price_class: str = "on_demand", model: str = MODEL) -> Offering:
    return Offering.objects.select_related("gpu_model").get(
        gpu_model=model, profile=profile, price_class=price_class
    )


def soft_offering(profile: str = "quarter", *, isolation: str = "soft", model: str = MODEL) -> Offering:
    """Sell a share of a card whose neighbours are kept out by software only, or by nothing."""
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
class Home:
    """A tenant with its root project and somebody who acts in it."""

    tenant: Tenant
    project: Project
    actor: Actor

    def child(self, name: str, parent: Project | None = None) -> Project:
        with as_tenant(self.tenant.pk):
            return projects.create(name=name, parent=parent or self.project, actor=self.actor, now=NOW)

    def quota(self, kind: QuotaKind, limit: int, project: Project | None = None) -> Quota:
        """Set a ceiling on a node of the tree."""
        with as_tenant(self.tenant.pk):
            window = window_of(clock.now()) if kind == QuotaKind.GPU_SECONDS else None
            quota, _ = Quota.objects.update_or_create(
                tenant=self.tenant,
                project=project or self.project,
                kind=kind,
                defaults={"limit": limit, "soft_limit": limit},
                create_defaults={"limit": limit, "soft_limit": limit, "window_start": window},
            )
            return quota

    def used(self, kind: QuotaKind = QuotaKind.UNITS, project: Project | None = None) -> int:
        with as_tenant(self.tenant.pk):
            return Quota.objects.get(project=project or self.project, kind=kind).used

    def member(self, role: Role, project: Project | None = None) -> User:
        user = User.objects.create_user(f"{role}-{next(_numbers)}@example.org")
        with as_tenant(self.tenant.pk):
            Member.objects.create(tenant=self.tenant, user=user, role=role, project=project, created_at=NOW)
        return user

    def token(
        self, role: Role = Role.MEMBER, *, scopes: tuple[str, ...] = ("tenant:admin",), now: datetime = NOW
    ) -> str:
        """Return the text of a token of a new service account with this role."""
        with as_tenant(self.tenant.pk):
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


def home(name: str = "Kestrel", *, units: int = 1000) -> Home:
    """Make a tenant that may hold that many compute slices at once."""
    actor = Actor("user", ids.new("usr"), f"mira@{name.lower()}.example")
    with as_tenant(""):
        tenant, root = tenants.create(name=name, owner=None, actor=actor, now=NOW)
    made = Home(tenant, root, actor)
    made.quota(QuotaKind.UNITS, units * 1000)
    return made


@dataclass
class Life:
    """Time, the outbox and the workers of a test in one: hints run in order of their moments, when time gets there."""

    clock: clock.SetClock
    hints: list[tuple[datetime, int, str, str, str]] = field(default_factory=list)
    _order: Iterator[int] = field(default_factory=itertools.count)

    @property
    def now(self) -> datetime:
        return self.clock.at

    def hear(self, task: str, subject: str, tenant_id: str, at: datetime) -> None:
        heapq.heappush(self.hints, (at, next(self._order), task, subject, tenant_id))

    def run(self, seconds: float = 0) -> None:
        """Let time pass, and all that was rung for happen at its moment."""
        until = self.now + timedelta(seconds=seconds)
        while self.hints and self.hints[0][0] <= until:
            at, _, task, subject, tenant_id = heapq.heappop(self.hints)
            self.clock.at = max(self.now, at)
            work(task, subject, tenant_id, now=self.now)
        self.clock.at = until

    def go(self, seconds: int) -> None:
        """Let time pass with the beat sweeping every five seconds."""
        for _ in range(seconds // 5):
            self.run(5)
            self.sweep()

    def sweep(self) -> None:
        """Do what the beat would have done now."""
        plans = (*stepping.due(now=self.now), *moving.due(now=self.now))
        for hint in (*reconcile.due(now=self.now), *plans, *keeping.due(now=self.now)):
            work(*hint, now=self.now)
        self.run()

    def ask(self, owner: Home, what: Offering, *, project: Project | None = None, **wanted: Any) -> Lease:
        """Ask for a lease, and leave it in the queue."""
        asked = {"name": f"job-{next(_numbers)}", "max_duration_s": 3600, **wanted}
        with as_tenant(owner.tenant.pk):
            return request(
                Wanted(offering_id=what.pk, **asked),
                project=project or owner.project,
                actor=owner.actor,
                now=self.now,
            )

    def lease(
        self, owner: Home, what: Offering, state: LeaseState = LeaseState.ACTIVE, **wanted: Any
    ) -> Lease:
        """Return a lease that lived up to a state: queued, provisioning, active, releasing or released."""
        lease = self.ask(owner, what, **wanted)
        if state is LeaseState.QUEUED:
            return lease
        self.run()
        for _ in range(600):
            lease = fresh(lease)
            if lease.state == state:
                return lease
            if lease.state == LeaseState.ACTIVE:
                self.release(lease)
                continue
            self.run(0.1)
        raise AssertionError(f"{lease.name} is {lease.state}, not {state}: {lease.waits_for}")

    def volume(
        self, owner: Home, name: str = "home", *, size_gib: int = 10, project: Project | None = None
    ) -> Volume:
        with as_tenant(owner.tenant.pk):
            return keeping.create(
                project=project or owner.project,
                name=name,
                size_gib=size_gib,
                actor=owner.actor,
                now=self.now,
            )

    def stop(self, lease: Lease, owner: Home) -> None:
        with as_tenant(lease.tenant_id):
            stopping.stop(fresh(lease), actor=owner.actor, now=self.now)

    def start(self, lease: Lease, owner: Home) -> Lease:
        with as_tenant(lease.tenant_id):
            return stopping.start(fresh(lease), actor=owner.actor, now=self.now)

    def release(self, lease: Lease, reason: EndReason = EndReason.BY_TENANT) -> None:
        with as_tenant(lease.tenant_id):
            ending.release(
                Lease.objects.select_related("offering").get(pk=lease.pk), reason=reason, now=self.now
            )


def work(task: str, subject: str, tenant_id: str, *, now: datetime) -> None:
    """Do what a worker does with a hint."""
    if task == "broker.step":
        reconcile.step(subject, tenant_id, now=now)
    elif task == "broker.leave":
        leaving.step(subject, tenant_id, now=now)
    elif task == "broker.volume":
        keeping.step(subject, tenant_id, now=now)
    elif task == "broker.serve":
        model, _, region = subject.partition("|")
        serving.serve((model, region), now=now)
    elif task == "broker.plan_layouts":
        planning.carry_out(subject, now=now)
    elif task == "broker.recut":
        stepping.step(subject, now=now)
    elif task == "broker.plan_moves":
        proposing.propose(subject, now=now)
    elif task == "broker.move":
        moving.step(subject, now=now)
    elif task == "broker.orphans":
        orphans.remove_in(subject, now=now)
    elif task == "broker.sweep_all":
        for hint in reconcile.all_live():
            work(*hint, now=now)
        orphans.remove_all(now=now)
    elif task == "billing.top_up":
        topping.collect(subject, tenant_id, now=now)
    elif task == "billing.collect":
        collecting.collect(subject, tenant_id, now=now)
    else:
        raise LookupError(f"nobody answers to {task}")


@contextmanager
def alive(at: datetime = NOW) -> Iterator[Life]:
    """Stop the clock at a moment, count ids and hear every hint until the block ends: each run is like the last."""
    with ExitStack() as stack:
        stack.enter_context(ids.counted("world"))
        life = Life(stack.enter_context(clock.standing_at(at)))
        stack.enter_context(doorbell.heard_by(life.hear))
        yield life


def fresh(lease: Lease) -> Lease:
    """Read a lease again."""
    with as_tenant(lease.tenant_id):
        return Lease.objects.select_related("offering", "project").get(pk=lease.pk)


def ledger(lease: Lease) -> list[Transition]:
    with as_tenant(lease.tenant_id):
        return list(Transition.objects.filter(lease_id=lease.pk).order_by("seq"))


def path(lease: Lease) -> str:
    """Write the states a lease went through: `requested queued provisioning active`."""
    return " ".join(step.after for step in ledger(lease))


def held(lease: Lease) -> list[Allocation]:
    """Return the places a lease holds now."""
    with as_tenant(lease.tenant_id):
        return list(
            Allocation.objects.filter(lease=lease, released_at=None, leaving_since=None).order_by(
                "gpu", "placement"
            )
        )


def settled(within_s: float = 30) -> None:
    """Wait until no older transaction holds the newest event back."""
    ends = clock.monotonic() + within_s
    with connection.cursor() as cursor:
        while clock.monotonic() < ends:
            with as_sweep():
                cursor.execute(SETTLED)
                if cursor.fetchone()[0]:
                    return
            clock.sleep(0.02)
    raise AssertionError("an older transaction still holds the newest event back")


def set_node(node: Node, state: NodeState, life: Life) -> None:
    inventory.set_node_state(node, state, reason="a test", actor=OPERATOR, now=life.now)


def node_of(lease: Lease) -> Node:
    return Gpu.objects.select_related("node__cluster").get(pk=held(lease)[0].gpu_id).node
