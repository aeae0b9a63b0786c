"""Relocation pages need a constant number of queries and stay small."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from broker.models import Gpu, Lease, Relocation, RelocationLogEntry, RelocationPlan
from broker.services.relocation.relocation_choice import MAX_RELOCATIONS
from tenants.services.rls import staff_scope, tenant_scope
from tests.simulation import Simulation, TenantContext, create_gpus, create_tenant, offering

STEPS_OF_A_MOVE = 4  # planned, noticed, moving, done


def a_plan(sim: Simulation, lease: Lease, *, moves: int) -> RelocationPlan:
    """Write a finished plan with relocations between GPUs."""
    here, there = Gpu.objects.order_by("index")[:2]
    drawn = {"gpu": here.pk, "name": "north-1-n01 / GPU 0", "grid": 8, "before": [[0, 1, 1], [4, 4, 0]]}
    plan = RelocationPlan.objects.create(
        cluster=here.node.cluster,
        gpu_model=here.gpu_model,
        reason="One GPU with few slices can be emptied and then sold whole.",
        cost_s=20,
        gain_milli=1000,
        gpus=[{**drawn, "after": [[4, 4, 0]]} for _ in range(2 * moves)],
        state="done",
        state_at=sim.now,
        proposed_at=sim.now,
    )
    place = {
        "from_gpu": here,
        "from_start": 0,
        "to_gpu": there,
        "to_start": 0,
        "cost_s": 20,
        "gain_milli": 80,
    }
    with tenant_scope(lease.tenant_id):
        Relocation.objects.bulk_create(
            Relocation(
                tenant_id=lease.tenant_id,
                plan=plan,
                n=n,
                lease=lease,
                profile="1g.10gb",
                size=1,
                state="done",
                state_at=sim.now,
                **place,
            )
            for n in range(1, moves + 1)
        )
    RelocationLogEntry.objects.bulk_create(
        RelocationLogEntry(plan=plan, seq=n, n=1 + n % moves, state="moving", at=sim.now, why="leaves its slice")
        for n in range(moves * STEPS_OF_A_MOVE)
    )
    return plan


def query_counts(operator: Client, plan: RelocationPlan) -> dict[str, int]:
    found = {}
    for name in (
        "/ops/relocation-plans/",
        f"/ops/relocation-plans/{plan.pk}/",
        "/api/v1/ops/relocation-plans",
        f"/api/v1/ops/relocation-plans/{plan.pk}",
    ):
        operator.get(name)  # what is looked up once per process is not counted
        with CaptureQueriesContext(connection) as spoken:
            assert operator.get(name).status_code == 200
        found[name.replace(plan.pk, "<pk>")] = len(spoken)
    return found


@pytest.fixture
def kestrel(sim: Simulation) -> TenantContext:
    create_gpus(2)
    return create_tenant("Kestrel")


@pytest.mark.deep
def test_the_number_of_queries_is_the_same_with_many_plans(
    sim: Simulation, kestrel: TenantContext, operator: Client
) -> None:
    lease = sim.create_lease(kestrel, offering())
    few = query_counts(operator, a_plan(sim, lease, moves=1))
    for _ in range(5):
        large = a_plan(sim, lease, moves=MAX_RELOCATIONS)
    assert query_counts(operator, large) == few
    assert max(few.values()) <= 17, few  # one of them: for whom room is made


def test_no_page_of_plans_is_larger_than_100_kb(sim: Simulation, kestrel: TenantContext, operator: Client) -> None:
    lease = sim.create_lease(kestrel, offering())
    for _ in range(45):
        large = a_plan(sim, lease, moves=MAX_RELOCATIONS)
    sizes = {
        page: len(operator.get(page).content)
        for page in ("/ops/relocation-plans/", f"/ops/relocation-plans/{large.pk}/")
    }
    assert {page: size for page, size in sizes.items() if size > 100_000} == {}
    with staff_scope():
        assert Relocation.objects.count() == 45 * MAX_RELOCATIONS
