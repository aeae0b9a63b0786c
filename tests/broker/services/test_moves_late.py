"""Moves that somebody looks at late, twice, or after all has gone otherwise: each is closed by what its lease is."""

from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import IntegrityError

from broker.models import Cluster, Lease, Move, MovePlan, StaleLease
from broker.provisioners.base import Observation, Order, Seen
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services.leases import allowing, stopping
from broker.services.moving import beginning, crossing, deciding, proposing
from tenants.services.walls import as_tenant
from tests.broker.services.movers import NOTICE_S, accepted, apart, moves, no_contradiction, story
from tests.broker.services.test_moves_that_fail import MOVING, M, S, cancel, is_home, until
from tests.broker.services.test_moves_that_fail import kestrel as kestrel
from tests.broker.services.test_moves_that_fail import lease as lease
from tests.broker.services.test_moves_that_fail import move as move
from tests.broker.services.test_moves_that_fail import plan as plan
from tests.world import OPERATOR, Home, Life, fresh, held


def nothing(*_: Any, **__: Any) -> None:
    """Be a worker that died before it came to this."""


def test_a_lease_that_moves_twice_is_told_once_and_again_before_the_second_time(
    life: Life, plan: MovePlan, move: Move, lease: Lease
) -> None:
    cancel(plan, life)
    life.go(30)
    (again,) = proposing.propose(Cluster.objects.get().pk, now=life.now)
    (first,) = moves(again)
    back = {each.attname: getattr(first, each.attname) for each in Move._meta.concrete_fields} | {
        "id": "mov_back",
        "n": 2,
        "from_gpu_id": first.to_gpu_id,
        "from_start": first.to_start,
        "to_gpu_id": first.from_gpu_id,
        "to_start": first.from_start,
    }
    with as_tenant(first.tenant_id):
        Move.objects.create(**back)
    beginning_of_it = story(again)
    accepted_plan = accepted_again(again, life)
    assert story(accepted_plan) == f"{beginning_of_it} accepted 1:noticed"
    life.go(2 * NOTICE_S + 120)
    assert story(accepted_plan).endswith("1:done 2:noticed 2:moving 2:done done")
    assert is_home(lease, first)
    no_contradiction(life)


def accepted_again(plan: MovePlan, life: Life) -> MovePlan:

    deciding.accept(plan, why="there and back", actor=OPERATOR, now=life.now)
    plan.refresh_from_db()
    return plan


def test_while_a_plan_is_carried_out_no_other_is_proposed_for_its_pool(life: Life, plan: MovePlan) -> None:
    assert proposing.propose(Cluster.objects.get().pk, now=life.now) == []


def test_a_lease_that_must_not_be_moved_has_no_open_move(life: Life, kestrel: Home) -> None:
    still, _ = apart(life, kestrel, kestrel)
    with as_tenant(still.tenant_id):
        assert allowing.open_move(still) is None


def test_another_contradiction_than_a_taken_place_is_no_reason_to_stay(
    life: Life, plan: MovePlan, move: Move, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Violated(Exception):
        diag = SimpleNamespace(constraint_name="some_other_promise")

    def broken(*_: Any, **__: Any) -> bool:
        raise IntegrityError("some other promise") from Violated()

    monkeypatch.setattr(beginning, "hold", broken)
    with pytest.raises(IntegrityError, match="some other promise"):
        beginning.begin(move, now=life.now)


def test_who_calls_a_plan_off_while_its_lease_is_seen_to_start_looks_again(
    life: Life, plan: MovePlan, move: Move, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(life, plan, lease, S.PROVISIONING)
    go_back, looks = crossing.go_back, []

    def too_late_once(lease: Lease, **how: Any) -> bool:
        looks.append(lease.state)
        if len(looks) == 1:
            raise StaleLease(lease.pk)
        return go_back(lease, **how)

    monkeypatch.setattr(crossing, "go_back", too_late_once)
    cancel(plan, life)
    life.go(60)
    assert len(looks) > 1
    assert fresh(lease).state == S.ACTIVE
    assert story(plan).endswith("cancelled")
    no_contradiction(life)


def test_a_move_whose_lease_is_active_already_is_closed_at_the_next_look(
    life: Life, plan: MovePlan, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(life, plan, lease, S.PROVISIONING)
    with monkeypatch.context() as died:
        died.setattr("broker.services.outcomes.crossing.land", nothing)
        died.setattr("broker.services.moving.stepping._look", nothing)
        until(life, plan, lease, S.ACTIVE)
    life.go(60)
    assert story(plan).endswith("1:done done")
    no_contradiction(life)


def test_a_lease_that_neither_place_takes_waits_for_another_and_its_move_has_failed(
    life: Life, plan: MovePlan, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(life, plan, lease, S.STOPPING)

    def nowhere(self: SimulatedProvisioner, order: Order, *, now: datetime) -> Observation:
        return Observation(Seen.LOST, "its node does not take it", last_seen=now)

    with monkeypatch.context() as broken:
        broken.setattr(SimulatedProvisioner, "ensure", nowhere)
        for _ in range(240):
            if moves(plan)[0].state == M.FAILED:
                break
            life.run(0.5)
    assert "waits for another place" in moves(plan)[0].why
    assert story(plan).startswith(f"{MOVING} 1:returning 1:failed")


def test_a_lease_found_stopped_on_its_way_stays_so(
    life: Life, kestrel: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart(life, kestrel, kestrel, movable=True)
    plan = accepted(life)
    (move,) = moves(plan)
    with as_tenant(move.tenant_id):
        Lease.objects.filter(pk=move.lease_id).update(volume=life.volume(kestrel))
    lease = Lease(pk=move.lease_id, tenant_id=move.tenant_id)
    until(life, plan, lease, S.STOPPING)
    with monkeypatch.context() as died:
        died.setattr(crossing, "call_off", nothing)
        died.setattr(crossing, "cross", lambda *_, **__: False)
        with as_tenant(move.tenant_id):
            stopping.stop(fresh(lease), actor=kestrel.actor, now=life.now)
        life.go(60)
    assert (fresh(lease).state, held(lease)) == (S.STOPPED, [])
    assert moves(plan)[0].why == "stopped by its tenant while it was moved"
    no_contradiction(life)
