"""Relocations during random events."""

from contextlib import suppress
from datetime import timedelta
from random import Random

import pytest

from broker.domain.lifecycle.relocation_states import RelocationPlanState
from broker.models import Cluster, Gpu, GpuHealth, Lease, RelocationPlan, SimulatedPod
from broker.services.inventory import hardware
from broker.services.leases import relocation_consent
from broker.services.leases.lifecycle import stop_and_start, termination
from broker.services.relocation import plan_decisions, plan_proposals
from tenants.services.errors import ProblemError
from tenants.services.rls import tenant_scope
from tests.broker.services.relocation.scattered_leases import assert_invariants, relocations_of
from tests.simulation import OPERATOR, Simulation, TenantContext, create_gpus, create_tenant, offering, reload_lease

PROFILES = ("1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb")


class Days:
    """A small fleet with random leases, relocations, faults and lost messages."""

    def __init__(self, sim: Simulation, seed: int) -> None:
        self.sim, self.chance, self.plans = sim, Random(seed), set[str]()
        create_gpus(3)
        self.owners = [create_tenant("Kestrel"), create_tenant("Merlin")]
        self.leases: list[Lease] = []
        for _ in range(16):
            self.launch("1g.10gb")
        sim.run(20)
        for lease in self.chance.sample(self.leases, 9):  # so the others are scattered
            sim.release_lease(lease)
        sim.run(20)

    def one(self) -> None:
        """Let one thing happen, and some time pass."""
        acts = (self.launch, self.end, self.decide, self.decide, self.cancel, self.stop, self.fail)
        with suppress(ProblemError):  # refused at the moment
            self.chance.choice((*acts, self.refuse))()
        if self.chance.random() < 0.2:
            self.sim.messages.clear()  # workers killed, Valkey away
        seconds = self.chance.choice((0.4, 1.3, 3, 20, 70, 300))
        self.sim.run(min(seconds, 4))
        self.sim.run_with_sweeps(int(seconds))
        self.sim.sweep()
        assert_invariants(self.sim)
        self.nothing_runs_twice()

    def nothing_runs_twice(self) -> None:
        names = SimulatedPod.objects.filter(gone_at=None).values_list("name", flat=True)
        leases = [name.rpartition("-g")[0] for name in names]
        assert len(leases) == len(set(leases)), f"runs twice: {sorted(leases)}"

    def live(self) -> Lease | None:
        live = [each for each in map(reload_lease, self.leases) if each.state not in ("releasing", "released")]
        return self.chance.choice(live) if live else None

    def owner(self, lease: Lease) -> TenantContext:
        return next(each for each in self.owners if each.tenant.pk == lease.tenant_id)

    def launch(self, what: str = "") -> None:
        owner, profile = self.chance.choice(self.owners), what or self.chance.choice(PROFILES)
        volume = self.sim.create_volume(owner, f"v{len(self.leases)}").pk if self.chance.random() < 0.4 else ""
        relocatable = self.chance.random() < 0.8
        wanted = {"max_duration_s": 20_000, "volume": volume, "relocatable": relocatable}
        self.leases.append(self.sim.request_lease(owner, offering(profile), **wanted))

    def end(self) -> None:
        if lease := self.live():
            self.sim.release_lease(lease)

    def open_plan(self) -> RelocationPlan | None:
        return RelocationPlan.objects.open().first()

    def decide(self) -> None:
        plan_proposals.propose_plans(Cluster.objects.get().pk, now=self.sim.now)
        if (plan := self.open_plan()) and plan.state == RelocationPlanState.PROPOSED:
            plan_decisions.accept_plan(plan, why="go", actor=OPERATOR, now=self.sim.now)
            self.plans.add(plan.pk)

    def cancel(self) -> None:
        if (plan := self.open_plan()) and self.chance.random() < 0.5:
            plan_decisions.cancel_plan(plan, why="not now", actor=OPERATOR, now=self.sim.now)

    def stop(self) -> None:
        if lease := self.live():
            with tenant_scope(lease.tenant_id):
                act = stop_and_start.start_lease if lease.state == "stopped" else stop_and_start.stop_lease
                act(lease, actor=self.owner(lease).actor, now=self.sim.now)

    def refuse(self) -> None:
        if lease := self.live():
            with tenant_scope(lease.tenant_id):
                actor = self.owner(lease).actor
                relocation_consent.set_relocatable(lease, not lease.relocatable, actor=actor, now=self.sim.now)

    def fail(self) -> None:
        gpu = self.chance.choice(list(Gpu.objects.select_related("node__cluster")))
        ill = gpu.health == GpuHealth.HEALTHY and self.chance.random() < 0.3
        health = GpuHealth.UNHEALTHY if ill else GpuHealth.HEALTHY
        hardware.set_gpu_health(gpu, health, reason="a test", actor=OPERATOR, now=self.sim.now)
        hardware.set_gpu_lost(gpu, ill, now=self.sim.now)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(4))
def test_invariants_hold_during_random_events_and_relocations(
    sim: Simulation, seed: int, settings: pytest.FixtureRequest
) -> None:
    settings.RELOCATION_NOTICE_S = 20  # type: ignore[attr-defined]
    days = Days(sim, seed)
    for _ in range(30):
        days.one()
    sim.run_with_sweeps(900)
    assert not RelocationPlan.objects.at_work().exists()
    plans = RelocationPlan.objects.filter(pk__in=days.plans)
    assert all(each.is_over for plan in plans for each in relocations_of(plan))
    for lease in map(reload_lease, days.leases):
        if lease.state != "released":
            with tenant_scope(lease.tenant_id):
                termination.release_lease(
                    lease, reason=termination.EndReason.BY_TENANT, now=sim.now + timedelta(seconds=1)
                )
    sim.run_with_sweeps(120)
    assert {reload_lease(lease).state for lease in days.leases} <= {"released", "releasing"}
    assert not SimulatedPod.objects.filter(gone_at=None).exists()
    assert_invariants(sim)
