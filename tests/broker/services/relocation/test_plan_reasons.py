"""Operators' reasons for relocation plans, hidden from tenants."""

import pytest

from broker.models import Lease, Relocation, RelocationLogEntry, RelocationPlan
from broker.services.relocation import plan_decisions
from tests.broker.services.relocation.scattered_leases import plan_log, relocations_of
from tests.broker.services.relocation.test_failed_relocations import MOVING, S, run_until
from tests.simulation import OPERATOR, Simulation, transitions_of

SECRET = "Zanzibar asked for whole GPUs first"


@pytest.mark.deep
@pytest.mark.parametrize("state", [S.STOPPING, S.PROVISIONING])
def test_the_cancellation_reason_of_a_plan_is_hidden_from_tenants(
    sim: Simulation, plan: RelocationPlan, move: Relocation, lease: Lease, state: str
) -> None:
    run_until(sim, plan, lease, S(state))
    plan.refresh_from_db()
    plan_decisions.cancel_plan(plan, why=SECRET, actor=OPERATOR, now=sim.now)
    sim.run_with_sweeps(60)
    assert plan_log(plan) == f"{MOVING} cancelling 1:returning 1:undone cancelled"
    found = [step.cause for step in transitions_of(lease)] + [each.why for each in relocations_of(plan)]
    assert [words for words in found if SECRET in words] == []
    assert RelocationLogEntry.objects.get(plan=plan, why=SECRET).state == "cancelling"
