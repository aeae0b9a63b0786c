"""Scattered leases that one GPU could hold."""

from broker.domain.lifecycle.relocation_states import RelocationPlanState
from broker.models import Cluster, Gpu, Lease, Relocation, RelocationLogEntry, RelocationPlan
from broker.services.relocation import plan_decisions, plan_proposals
from broker.services.reports import invariant_checks
from tenants.services.rls import staff_scope
from tests.simulation import OPERATOR, Simulation, TenantContext, held_allocations, offering, reload_lease

NOTICE_S = 900


def scatter_leases(sim: Simulation, one: TenantContext, other: TenantContext, **wanted: object) -> tuple[Lease, Lease]:
    """Place two small leases on a GPU each."""
    first = sim.create_lease(one, offering("1g.10gb"), max_duration_s=7200, **wanted)
    fillers = [sim.create_lease(one, offering("1g.10gb")) for _ in range(6)]
    second = sim.create_lease(other, offering("1g.10gb"), max_duration_s=7200, **wanted)
    for filler in fillers:
        sim.release_lease(filler)
    sim.run(30)
    places = {held_allocations(lease)[0].gpu_id for lease in (first, second)}
    assert len(places) == 2, "they are on one GPU already"
    return reload_lease(first), reload_lease(second)


def propose_plan(sim: Simulation) -> RelocationPlan:
    (plan,) = plan_proposals.propose_plans(Cluster.objects.get().pk, now=sim.now)
    assert plan.state == RelocationPlanState.PROPOSED
    return plan


def accept_plan(sim: Simulation) -> RelocationPlan:
    plan = propose_plan(sim)
    plan_decisions.accept_plan(plan, why="whole GPUs are asked for", actor=OPERATOR, now=sim.now)
    plan.refresh_from_db()
    return plan


def relocations_of(plan: RelocationPlan) -> list[Relocation]:
    with staff_scope():
        return list(Relocation.objects.filter(plan=plan).order_by("n"))


def plan_log(plan: RelocationPlan) -> str:
    """Return the log of a plan: its states, and those of its numbered relocations."""
    entries = RelocationLogEntry.objects.filter(plan=plan).order_by("seq").values_list("n", "state")
    return " ".join(state if n is None else f"{n}:{state}" for n, state in entries)


def gpu_of(lease: Lease) -> Gpu:
    (place,) = [each for each in held_allocations(lease) if not each.is_relocation]
    return place.gpu


def assert_invariants(sim: Simulation) -> None:
    with staff_scope():
        found = [
            (each.name, each.examples) for each in invariant_checks.check_invariants(now=sim.now) if not each.holds
        ]
    assert found == []
