"""Random runs with relocations and faults."""

import os
from typing import Any

import pytest
from django.db import transaction

from broker.domain.lifecycle.relocation_states import CANCELLABLE_PLAN_STATES
from broker.domain.lifecycle.states import Isolation
from broker.models import Allocation, Cluster, Gpu, Relocation, RelocationPlan
from broker.services.inventory.gpu_catalogue import gpu_model_spec
from broker.services.leases import relocation_consent
from broker.services.leases.lease_requests import LeaseRequest, request_lease
from broker.services.relocation import plan_decisions, plan_reconciler
from broker.services.reports import invariant_checks
from ports.clock import SettableClock
from tenants.services.rls import staff_scope, system_scope, tenant_scope
from tests.database import OwnDatabase
from tests.sim.driver import Sim, live_and_rest, simulated
from tests.simulation import MODEL, OPERATOR, create_tenant, offering, run_task

SEEDS = range(1, 1 + int(os.environ.get("SIM_SEEDS", "3")))
STEPS = 500


class Moving(Sim):
    """Random runs in which any lease may be relocated."""

    profiles = ("1g.10gb", "1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb")
    lasts = (1000, 9000)
    moves = True

    def __init__(self, seed: int, clock: SettableClock) -> None:
        super().__init__(seed, clock)
        acts = ((24, self.plan), (20, self.time_passes), (1, self.call_off), (1, self.change_their_mind))
        for weight, act in acts:
            self.acts += [act] * weight

    def plan(self) -> None:
        """Relocate a lease or two, unless a plan is open."""
        moves = [move for move in (self.some_move() for _ in range(2)) if move]
        if moves and not RelocationPlan.objects.open().exists():
            self.accept(moves)

    @transaction.atomic
    def accept(self, moves: list[Relocation]) -> None:
        now = self.clock.at
        plan = RelocationPlan.objects.create(
            cluster=Cluster.objects.get(),
            gpu_model_id=MODEL,
            reason="sim",
            cost_s=30,
            gain_milli=0,
            gpus=[],
            state_at=now,
            proposed_at=now,
        )
        for n, move in enumerate(moves, 1):
            move.plan, move.n, move.state_at = plan, n, now
            with tenant_scope(move.tenant_id):
                move.save()
        plan_decisions.accept_plan(plan, why="sim", actor=OPERATOR, now=now)

    def some_move(self) -> Relocation | None:
        """Pick a lease and a GPU in service with room for it."""
        with system_scope():
            places = Allocation.objects.filter(released_at=None).order_by("id")
            whole = places.filter(lease__state="active", lease__quantity=1, lease__relocatable=True)
            mine = list(whole.filter(lease__conditions={}))
            taken = [(each.gpu_id, each.placement) for each in places]
            serving = list(Gpu.objects.sellable().order_by("uuid"))
        if not mine or len(serving) < 2:
            return None
        held: Any = self.pick(mine)  # type: ignore[arg-type]
        profile = gpu_model_spec(MODEL).profile(held.profile, Isolation(held.isolation))
        to_gpu: Any = self.pick([each for each in serving if each.pk != held.gpu_id])
        for place in profile.placements:
            if not any(gpu == to_gpu.pk and r.lower < place.end and place.start < r.upper for gpu, r in taken):
                return Relocation(
                    tenant_id=held.tenant_id,
                    lease_id=held.lease_id,
                    profile=held.profile,
                    size=place.size,
                    from_gpu_id=held.gpu_id,
                    from_start=held.placement.lower,
                    to_gpu=to_gpu,
                    to_start=place.start,
                    cost_s=30,
                    gain_milli=0,
                )
        return None

    def move_in_the_calm(self) -> Relocation:
        """Relocate a new lease after the faults."""
        swallow = create_tenant("Swallow")
        wanted = LeaseRequest(offering_id=offering("1g.10gb").pk, name="calm", max_duration_s=9000, relocatable=True)
        with tenant_scope(swallow.tenant.pk):
            request_lease(wanted, project=swallow.project, actor=swallow.actor, now=self.clock.at)
        self.run_calm(60)
        move = self.some_move()
        assert move
        self.accept([move])
        self.run_calm(60)
        with tenant_scope(move.tenant_id):
            move.refresh_from_db()
        return move

    def call_off(self) -> None:
        found = RelocationPlan.objects.filter(state__in=CANCELLABLE_PLAN_STATES).first()
        if found and self.chance.below(0.3):
            plan_decisions.cancel_plan(found, why="sim", actor=OPERATOR, now=self.clock.at)

    def change_their_mind(self) -> None:
        if (lease := self.some_lease()) and not lease.stays:
            with tenant_scope(lease.tenant_id):
                relocation_consent.set_relocatable(lease, not lease.relocatable, actor=OPERATOR, now=self.clock.at)

    def sweep(self) -> None:
        super().sweep()
        for hint in plan_reconciler.due_plans(now=self.clock.at):
            run_task(*hint, now=self.clock.at)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.deep
def test_the_invariants_hold_despite_faults_during_relocations(
    own_database: OwnDatabase, settings: Any, seed: int
) -> None:
    settings.RELOCATION_NOTICE_S = 2
    with simulated(seed, Moving) as sim:
        live_and_rest(sim, steps=STEPS)
        last = sim.move_in_the_calm()
        with staff_scope():
            became = set(Relocation.objects.values_list("state", flat=True))
            under_way = list(RelocationPlan.objects.at_work())
            wrong = [
                (each.name, each.examples)
                for each in invariant_checks.check_invariants(now=sim.clock.at)
                if not each.holds
            ]
    assert (under_way, wrong) == ([], [])
    assert (last.state, last.why) == ("done", "active on its new slice")
    assert became <= {"planned", "done", "undone", "failed"}
