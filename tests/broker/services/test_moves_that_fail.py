"""Whatever gets in the way of a move: its lease is where it was or at its next place, held once and charged once."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.db import IntegrityError, transaction

from broker.domain.moves import MoveState, PlanState
from broker.domain.states import LeaseState
from broker.models import Gpu, Health, Lease, Move, MovePlan
from broker.provisioners.base import Observation, Order, Seen
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services import inventory, reconcile
from broker.services.leases import allowing, stopping
from broker.services.leases.allowing import BeingMoved
from broker.services.moving import deciding, stepping
from broker.services.moving.deciding import NotNow
from tenants.services.walls import as_tenant
from tests.broker.services.movers import NOTICE_S, accepted, apart, card_of, moves, no_contradiction, story
from tests.world import OPERATOR, Home, Life, cards, fresh, held, home, offering, path, work

S, M, P = LeaseState, MoveState, PlanState
BEGINS = "proposed accepted 1:noticed"
MOVING = f"{BEGINS} running 1:moving"


@pytest.fixture
def kestrel(life: Life) -> Home:
    cards(2)
    return home("Kestrel")


@pytest.fixture
def plan(life: Life, kestrel: Home) -> MovePlan:
    apart(life, kestrel, kestrel, movable=True)
    return accepted(life)


@pytest.fixture
def move(plan: MovePlan) -> Move:
    return moves(plan)[0]


@pytest.fixture
def lease(move: Move) -> Lease:
    with as_tenant(move.tenant_id):
        return Lease.objects.select_related("offering", "project").get(pk=move.lease_id)


def until(life: Life, plan: MovePlan, lease: Lease, state: LeaseState) -> None:
    """Go on in small steps until the lease is in a state, its move under way."""
    if life.now < (plan.not_before or life.now):
        life.go(NOTICE_S - 5)
    for _ in range(600):
        if fresh(lease).state == state and moves(plan)[0].state != M.NOTICED:
            return
        life.run(0.25)
    raise AssertionError(f"{fresh(lease).state}, {story(plan)}")


def cancel(plan: MovePlan, life: Life) -> None:
    plan.refresh_from_db()
    deciding.cancel(plan, why="not tonight", actor=OPERATOR, now=life.now)


def is_home(lease: Lease, move: Move) -> bool:
    (place,) = held(lease)
    return (place.gpu_id, place.placement.lower) == (move.from_gpu_id, move.from_start)


def test_a_place_that_was_taken_meanwhile_leaves_the_lease_where_it_is(
    life: Life, kestrel: Home, plan: MovePlan, move: Move, lease: Lease
) -> None:
    while card_of(life.lease(kestrel, offering("1g.10gb"))).pk != move.to_gpu_id:
        pass
    for _ in range(6):
        life.lease(kestrel, offering("1g.10gb"))
    life.go(NOTICE_S + 30)
    assert story(plan) == f"{BEGINS} 1:undone failed"
    assert "is taken" in moves(plan)[0].why
    assert is_home(lease, move)
    assert path(lease).endswith("active active")
    no_contradiction(life)


def test_postgresql_decides_where_two_take_the_place_at_once(
    life: Life, plan: MovePlan, lease: Lease, move: Move, monkeypatch: pytest.MonkeyPatch, kestrel: Home
) -> None:
    while card_of(life.lease(kestrel, offering("1g.10gb"))).pk != move.to_gpu_id:
        pass
    for _ in range(6):
        life.lease(kestrel, offering("1g.10gb"))
    monkeypatch.setattr("broker.services.moving.holding._taken", lambda *_: "")
    life.go(NOTICE_S + 30)
    assert moves(plan)[0].why == "the place it was to go to was taken meanwhile"
    assert (is_home(lease, move), fresh(lease).state) == (True, S.ACTIVE)
    no_contradiction(life)


def refuse(order: Order, now: datetime) -> Observation:
    return Observation(Seen.REFUSED, "no such thing here")


def lose(order: Order, now: datetime) -> Observation:
    return Observation(Seen.LOST, "its node does not take it", last_seen=now)


@pytest.mark.parametrize("answer", [refuse, lose])
def test_a_lease_that_its_next_place_does_not_take_starts_again_where_it_was(
    life: Life,
    plan: MovePlan,
    move: Move,
    lease: Lease,
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[Order, datetime], Observation],
) -> None:
    ensure = SimulatedProvisioner.ensure

    def there_only(self: SimulatedProvisioner, order: Order, *, now: datetime) -> Observation:
        if move.to_gpu_id in {each.gpu for each in order.slices}:
            return answer(order, now)
        return ensure(self, order, now=now)

    monkeypatch.setattr(SimulatedProvisioner, "ensure", there_only)
    life.go(NOTICE_S + 60)
    assert story(plan) == f"{MOVING} 1:returning 1:undone failed"
    assert (is_home(lease, move), fresh(lease).state) == (True, S.ACTIVE)
    assert fresh(lease).generation == lease.generation + 2
    assert path(lease).endswith("stopping stopped queued provisioning queued provisioning active")
    no_contradiction(life)


@pytest.mark.parametrize("state", [S.STOPPING, S.PROVISIONING])
def test_a_plan_that_is_called_off_brings_back_what_is_under_way(
    life: Life, plan: MovePlan, move: Move, lease: Lease, state: LeaseState
) -> None:
    until(life, plan, lease, state)
    cancel(plan, life)
    life.go(60)
    assert story(plan) == f"{MOVING} cancelling 1:returning 1:undone cancelled"
    assert (is_home(lease, move), fresh(lease).state) == (True, S.ACTIVE)
    no_contradiction(life)


def test_a_plan_that_is_called_off_in_time_moves_nothing(
    life: Life, plan: MovePlan, move: Move, lease: Lease
) -> None:
    cancel(plan, life)
    life.go(30)
    assert story(plan) == f"{BEGINS} cancelling 1:undone cancelled"
    assert is_home(lease, move)
    with pytest.raises(NotNow):
        cancel(plan, life)
    with pytest.raises(NotNow):
        deciding.accept(plan, why="after all", actor=OPERATOR, now=life.now)


def test_a_tenant_may_take_it_back_until_the_move_begins(
    life: Life, kestrel: Home, plan: MovePlan, move: Move, lease: Lease
) -> None:
    with as_tenant(lease.tenant_id):
        allowing.allow_moves(lease, False, actor=kestrel.actor, now=life.now)
    life.go(NOTICE_S + 30)
    assert story(plan) == f"{BEGINS} 1:undone failed"
    assert moves(plan)[0].why == "its tenant no longer allows it"
    assert is_home(lease, move)


def test_a_tenant_that_takes_it_back_too_late_is_told_so(
    life: Life, kestrel: Home, plan: MovePlan, lease: Lease
) -> None:
    until(life, plan, lease, S.STOPPING)
    with as_tenant(lease.tenant_id), pytest.raises(BeingMoved):
        allowing.allow_moves(lease, False, actor=kestrel.actor, now=life.now)


@pytest.mark.parametrize("state", [S.STOPPING, S.PROVISIONING])
def test_a_lease_that_is_released_on_its_way_leaves_both_places(
    life: Life, plan: MovePlan, lease: Lease, state: LeaseState
) -> None:
    until(life, plan, lease, state)
    life.release(lease)
    life.go(60)
    assert (fresh(lease).state, held(lease)) == (S.RELEASED, [])
    assert story(plan) == f"{MOVING} 1:undone failed"
    no_contradiction(life)


def test_a_lease_that_its_tenant_stops_on_its_way_stays_stopped(life: Life, kestrel: Home) -> None:
    first, _ = apart(life, kestrel, kestrel, movable=True)
    plan = accepted(life)
    with as_tenant(first.tenant_id):
        Lease.objects.filter(pk=moves(plan)[0].lease_id).update(volume=life.volume(kestrel))
    lease = Lease(pk=moves(plan)[0].lease_id, tenant_id=first.tenant_id)
    until(life, plan, lease, S.STOPPING)
    with as_tenant(first.tenant_id):
        stopping.stop(fresh(lease), actor=kestrel.actor, now=life.now)
    life.go(60)
    assert (fresh(lease).state, held(lease)) == (S.STOPPED, [])
    assert story(plan) == f"{MOVING} 1:undone failed"
    no_contradiction(life)


def test_a_card_that_fails_brings_the_lease_home(
    life: Life, plan: MovePlan, move: Move, lease: Lease
) -> None:
    until(life, plan, lease, S.PROVISIONING)
    gpu = Gpu.objects.select_related("node__cluster").get(pk=move.to_gpu_id)
    inventory.set_health(gpu, Health.UNHEALTHY, reason="Xid 79", actor=OPERATOR, now=life.now)
    life.go(60)
    assert (is_home(lease, move), fresh(lease).state) == (True, S.ACTIVE)
    no_contradiction(life)


def test_a_lease_that_kills_its_workers_at_its_next_place_goes_back_to_where_it_killed_nobody(
    life: Life, plan: MovePlan, move: Move, lease: Lease
) -> None:
    until(life, plan, lease, S.PROVISIONING)
    with as_tenant(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(tries=reconcile.DEADLY)
    life.go(60)
    assert story(plan) == f"{MOVING} 1:returning 1:undone failed"
    assert (is_home(lease, move), fresh(lease).state) == (True, S.ACTIVE)
    no_contradiction(life)


def test_whichever_hint_is_lost_the_sweep_goes_on_with_it(
    life: Life, plan: MovePlan, move: Move, lease: Lease
) -> None:
    life.go(NOTICE_S - 5)
    for _ in range(40):
        life.clock.at += timedelta(seconds=5)
        for hint in (*reconcile.due(now=life.now), *stepping.due(now=life.now)):
            work(*hint, now=life.now)
        life.hints.clear()  # workers were killed, or Valkey was away
    assert story(plan).endswith("1:done done")
    assert card_of(lease).pk == move.to_gpu_id
    no_contradiction(life)


def test_a_lease_has_one_open_move(life: Life, plan: MovePlan, move: Move) -> None:
    again = {each.attname: getattr(move, each.attname) for each in Move._meta.concrete_fields}
    with as_tenant(move.tenant_id), pytest.raises(IntegrityError), transaction.atomic():
        Move.objects.create(**{**again, "id": "mov_another", "n": 2})


def test_a_plan_whose_step_somebody_else_takes_is_left_to_them(life: Life, plan: MovePlan) -> None:
    plan.refresh_from_db()
    MovePlan.objects.filter(pk=plan.pk).update(claimed_until=life.now.replace(year=2027))
    life.clock.at = plan.not_before or life.now
    stepping.step(plan.pk, now=life.now)
    assert story(plan) == BEGINS
    assert stepping.due(now=life.now) == []
