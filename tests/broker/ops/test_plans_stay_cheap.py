"""However many plans and moves there are, their pages and calls ask the database as often, and no page grows large."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from broker.models import Gpu, Lease, Move, MoveEntry, MovePlan
from broker.services.moving.choosing import MOST_MOVES
from tenants.services.walls import as_staff, as_tenant
from tests.world import Home, Life, cards, home, offering

STEPS_OF_A_MOVE = 4  # planned, noticed, moving, done


def a_plan(life: Life, lease: Lease, *, moves: int) -> MovePlan:
    """Write down a plan that is over, each of its moves between two cards of its own."""
    here, there = Gpu.objects.order_by("index")[:2]
    drawn = {"gpu": here.pk, "name": "north-1-n01 / card 0", "grid": 8, "before": [[0, 1, 1], [4, 4, 0]]}
    plan = MovePlan.objects.create(
        cluster=here.node.cluster,
        gpu_model=here.gpu_model,
        reason="One card holds so little that it finds room beside others; emptied, it can be sold whole.",
        cost_s=20,
        gain_milli=1000,
        cards=[{**drawn, "after": [[4, 4, 0]]} for _ in range(2 * moves)],
        state="done",
        state_at=life.now,
        proposed_at=life.now,
    )
    place = {
        "from_gpu": here,
        "from_start": 0,
        "to_gpu": there,
        "to_start": 0,
        "cost_s": 20,
        "gain_milli": 80,
    }
    with as_tenant(lease.tenant_id):
        Move.objects.bulk_create(
            Move(
                tenant_id=lease.tenant_id,
                plan=plan,
                n=n,
                lease=lease,
                profile="1g.10gb",
                size=1,
                state="done",
                state_at=life.now,
                **place,
            )
            for n in range(1, moves + 1)
        )
    MoveEntry.objects.bulk_create(
        MoveEntry(plan=plan, seq=n, n=1 + n % moves, state="moving", at=life.now, why="leaves its place")
        for n in range(moves * STEPS_OF_A_MOVE)
    )
    return plan


def asked(operator: Client, plan: MovePlan) -> dict[str, int]:
    found = {}
    for name in (
        "/ops/plans/",
        f"/ops/plans/{plan.pk}/",
        "/api/v1/ops/plans",
        f"/api/v1/ops/plans/{plan.pk}",
    ):
        operator.get(name)  # what is looked up once per process is not counted
        with CaptureQueriesContext(connection) as spoken:
            assert operator.get(name).status_code == 200
        found[name.replace(plan.pk, "<pk>")] = len(spoken)
    return found


@pytest.fixture
def kestrel(life: Life) -> Home:
    cards(2)
    return home("Kestrel")


def test_pages_and_calls_of_plans_ask_as_often_with_many_as_with_few(
    life: Life, kestrel: Home, operator: Client
) -> None:
    lease = life.lease(kestrel, offering())
    few = asked(operator, a_plan(life, lease, moves=1))
    for _ in range(5):
        large = a_plan(life, lease, moves=MOST_MOVES)
    assert asked(operator, large) == few
    assert max(few.values()) <= 17, few  # one of them: for whom room is made


def test_no_page_of_plans_is_larger_than_100_kb(life: Life, kestrel: Home, operator: Client) -> None:
    lease = life.lease(kestrel, offering())
    for _ in range(45):
        large = a_plan(life, lease, moves=MOST_MOVES)
    sizes = {page: len(operator.get(page).content) for page in ("/ops/plans/", f"/ops/plans/{large.pk}/")}
    assert {page: size for page, size in sizes.items() if size > 100_000} == {}
    with as_staff():
        assert Move.objects.count() == 45 * MOST_MOVES
