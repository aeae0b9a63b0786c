"""Why a lease is not moved after all: each reason in a plain sentence, and the lease as it was."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from broker.domain.cuts import Cut
from broker.domain.moves import MoveState, PlanState
from broker.models import Cluster, Gpu, Health, Lease, Move, MovePlan
from broker.services import inventory
from broker.services.layouts import cards as cutting
from broker.services.moving import beginning, deciding, holding, proposing, records, stepping
from tenants.services.refusals import Stale
from tenants.services.walls import as_tenant
from tests.broker.services.movers import NOTICE_S, accepted, apart, moves, no_contradiction, proposed, story
from tests.world import OPERATOR, Home, Life, cards, fresh, home

Happens = Callable[[Life, Lease, Move], None]
M, P = MoveState, PlanState


@pytest.fixture
def kestrel(life: Life) -> Home:
    cards(2)
    made = home("Kestrel")
    apart(life, made, made, movable=True)
    return made


def change(lease: Lease, **fields: object) -> None:
    with as_tenant(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(**fields)


def ends(life: Life, lease: Lease, move: Move) -> None:
    life.release(lease)


def keeps(life: Life, lease: Lease, move: Move) -> None:
    change(lease, movable=False)


def is_in_doubt(life: Life, lease: Lease, move: Move) -> None:
    change(lease, conditions={"unreachable": "nobody answers"})


def ends_soon(life: Life, lease: Lease, move: Move) -> None:
    change(lease, ends_at=life.now + timedelta(minutes=2))


def lies_elsewhere(life: Life, lease: Lease, move: Move) -> None:
    with as_tenant(lease.tenant_id):
        Move.objects.filter(pk=move.pk).update(from_start=5)


def card_fails(life: Life, lease: Lease, move: Move) -> None:
    gpu = Gpu.objects.select_related("node__cluster").get(pk=move.to_gpu_id)
    inventory.set_health(gpu, Health.UNHEALTHY, reason="Xid 79", actor=OPERATOR, now=life.now)


def card_is_cut_otherwise(life: Life, lease: Lease, move: Move) -> None:
    cutting.cut_as(Gpu.objects.get(pk=move.to_gpu_id), Cut.of(["3g.40gb"] * 2))


def card_publishes_it_no_longer(life: Life, lease: Lease, move: Move) -> None:
    Gpu.objects.filter(pk=move.to_gpu_id).update(published={"7g.80gb": [0]})


@pytest.mark.parametrize(
    ("happens", "why"),
    [
        (ends, "it is releas"),
        (keeps, "its tenant no longer allows it"),
        (is_in_doubt, "nobody knows for certain how it is just now"),
        (ends_soon, "it ends by itself"),
        (lies_elsewhere, "it is no longer where the plan found it"),
        (card_fails, "the card it was to go to is not in service"),
        (card_is_cut_otherwise, "the place it was to go to is taken"),
        (card_publishes_it_no_longer, "the place it was to go to is taken"),
    ],
)
def test_a_lease_that_can_no_longer_be_moved_is_left_alone(
    life: Life, kestrel: Home, happens: Happens, why: str
) -> None:
    plan = proposed(life)
    (move,) = moves(plan)
    lease = Lease(pk=move.lease_id, tenant_id=move.tenant_id)
    happens(life, fresh(lease), move)
    deciding.accept(plan, why="go", actor=OPERATOR, now=life.now)
    life.go(NOTICE_S + 30)
    assert story(plan) == "proposed accepted 1:undone failed"
    assert moves(plan)[0].why.startswith(why)
    no_contradiction(life)


def test_a_slot_of_a_card_that_is_cut_in_advance_will_do(life: Life, kestrel: Home) -> None:
    plan = accepted(life)
    (move,) = moves(plan)
    cutting.cut_as(Gpu.objects.get(pk=move.to_gpu_id), Cut.of(["1g.10gb"] * 7))
    life.go(NOTICE_S + 60)
    assert moves(plan)[0].state == M.DONE


def test_a_card_that_fails_at_the_last_moment_is_not_gone_to(
    life: Life, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = accepted(life)
    (move,) = moves(plan)
    with monkeypatch.context() as late:
        late.setattr(holding, "_taken", lambda *_: "")
        card_fails(life, Lease(pk=move.lease_id), move)
        assert not beginning.begin(move, now=life.now)
    assert moves(plan)[0].state == M.NOTICED
    life.go(NOTICE_S + 30)
    assert moves(plan)[0].state == M.UNDONE


def test_a_lease_is_promised_to_one_plan_alone(life: Life, kestrel: Home) -> None:
    plan = accepted(life)
    (move,) = moves(plan)
    other = MovePlan.objects.create(
        cluster=plan.cluster,
        gpu_model_id="A100-80GB",
        reason="another",
        cost_s=1,
        gain_milli=1,
        cards=[],
        state_at=life.now,
        proposed_at=life.now,
    )
    fields = {each.attname: getattr(move, each.attname) for each in Move._meta.concrete_fields}
    again = {**fields, "id": "mov_again", "plan_id": other.pk, "state": M.PLANNED.value}
    with as_tenant(move.tenant_id):
        Move.objects.create(**again)
    deciding.accept(other, why="go", actor=OPERATOR, now=life.now)
    assert moves(other)[0].why == "it is being moved already"


def test_a_plan_that_moved_on_is_not_decided_twice(life: Life, kestrel: Home) -> None:
    plan = proposed(life)
    stale = MovePlan.objects.get(pk=plan.pk)
    deciding.decline(plan, why="no", actor=OPERATOR, now=life.now)
    with pytest.raises(Stale):
        deciding.accept(stale, why="go", actor=OPERATOR, now=life.now)
    with pytest.raises(ValueError, match="cannot become"):
        records.turn_plan(plan, P.DONE, why="", now=life.now)


def test_a_move_only_goes_on_from_where_it_stands(life: Life, kestrel: Home) -> None:
    plan = accepted(life)
    (move,) = moves(plan)
    with as_tenant(move.tenant_id):
        stale = Move.objects.get(pk=move.pk)
        assert records.turn_move(move, M.UNDONE, why="x", now=life.now)
        assert not records.turn_move(stale, M.MOVING, why="x", now=life.now)
        with pytest.raises(ValueError, match="cannot become"):
            records.turn_move(move, M.MOVING, why="x", now=life.now)


def test_what_is_no_plan_at_work_is_left_alone(life: Life, kestrel: Home) -> None:
    plan = proposed(life)
    stepping.step(plan.pk, now=life.now)
    assert story(plan) == "proposed"
    (move,) = moves(plan)
    assert not beginning.begin(move, now=life.now)


def test_a_plan_looked_at_too_early_waits_for_its_moment(life: Life, kestrel: Home) -> None:
    plan = accepted(life)
    stepping.step(plan.pk, now=life.now)
    plan.refresh_from_db()
    assert (plan.due_at, plan.claimed_until) == (plan.not_before, None)


def test_nothing_is_planned_where_the_cluster_picks_the_card_by_itself(life: Life, kestrel: Home) -> None:
    Cluster.objects.update(driver="dra", driver_options={"extended": True})
    assert proposing.propose(Cluster.objects.get().pk, now=life.now) == []
    Cluster.objects.update(driver_options={"extended": False})
    assert moves(proposed(life))
