"""Moves of whose lease somebody else makes something at the same moment, and moves that lose a node on their way."""

from contextlib import suppress
from typing import Any

import pytest

from broker.models import Cluster, Gpu, Lease, Move, MovePlan, Node, NodeState, StaleLease
from broker.provisioners.base import Observation, Order, Seen
from broker.provisioners.simulated import SimulatedProvisioner
from broker.services import inventory
from broker.services.inventory import Rack
from broker.services.leases import stopping
from broker.services.leases.stopping import NotActive
from broker.services.moving import crossing
from tenants.services.walls import as_tenant
from tests.broker.services.movers import accepted, apart, card_of, moves, no_contradiction, story
from tests.broker.services.test_moves_that_fail import MOVING, M, S, is_home, until
from tests.broker.services.test_moves_that_fail import kestrel as kestrel
from tests.broker.services.test_moves_that_fail import lease as lease
from tests.broker.services.test_moves_that_fail import move as move
from tests.broker.services.test_moves_that_fail import plan as plan
from tests.world import MODEL, OPERATOR, REGION, Home, Life, fleet, fresh, held, home, node_of, set_node


def too_late(act: Any, lease: Lease, **how: Any) -> None:
    """Act as a worker does that read the lease before somebody changed it: what it wrote until it noticed stays."""
    with as_tenant(lease.tenant_id), suppress(StaleLease):
        act(lease, **how)


def rang(life: Life) -> bool:
    return any(
        task == "broker.serve" and subject == f"{MODEL}|{REGION}" for _, _, task, subject, _ in life.hints
    )


def with_volume(life: Life, owner: Home, lease: Lease) -> None:
    with as_tenant(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(volume=life.volume(owner))


def test_who_crosses_with_a_lease_that_was_just_released_changes_neither_place(
    life: Life, plan: MovePlan, lease: Lease
) -> None:
    until(life, plan, lease, S.STOPPING)
    read_before = fresh(lease)
    life.release(lease)
    too_late(crossing.cross, read_before, now=life.now)
    no_contradiction(life)
    life.go(60)
    assert (fresh(lease).state, held(lease)) == (S.RELEASED, [])
    no_contradiction(life)


def test_who_brings_back_a_lease_that_has_just_started_leaves_its_place_alone(
    life: Life, plan: MovePlan, move: Move, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    until(life, plan, lease, S.PROVISIONING)
    read_before, moving = fresh(lease), moves(plan)[0]
    until(life, plan, lease, S.ACTIVE)
    with monkeypatch.context() as at_once:  # its move was read before, too
        at_once.setattr(crossing, "begun", lambda _: moving)
        too_late(crossing.go_back, read_before, why="not ready in time", now=life.now)
    life.go(120)
    assert (fresh(lease).state, card_of(lease).pk) == (S.ACTIVE, move.to_gpu_id)
    no_contradiction(life)


def test_who_stops_a_lease_that_has_just_crossed_is_told_that_it_is_on_its_way(
    life: Life, kestrel: Home, plan: MovePlan, move: Move, lease: Lease
) -> None:
    with_volume(life, kestrel, lease)
    until(life, plan, lease, S.STOPPING)
    read_before = fresh(lease)
    until(life, plan, lease, S.PROVISIONING)
    with as_tenant(lease.tenant_id), pytest.raises(NotActive):
        stopping.stop(read_before, actor=kestrel.actor, now=life.now)
    no_contradiction(life)
    life.go(60)
    assert (fresh(lease).state, card_of(lease).pk) == (S.ACTIVE, move.to_gpu_id)
    assert story(plan).endswith("1:done done")


def test_a_stop_that_calls_a_move_off_wakes_the_queue_at_once(
    life: Life, kestrel: Home, plan: MovePlan, lease: Lease
) -> None:
    with_volume(life, kestrel, lease)
    until(life, plan, lease, S.STOPPING)
    life.hints.clear()
    life.stop(lease, kestrel)
    assert rang(life)


def test_a_plan_that_is_called_off_wakes_the_queue_as_soon_as_the_place_is_free(
    life: Life, plan: MovePlan, lease: Lease
) -> None:
    until(life, plan, lease, S.STOPPING)
    MovePlan.objects.filter(pk=plan.pk).update(state="cancelling")
    life.hints.clear()
    with as_tenant(lease.tenant_id):
        assert crossing.cross(fresh(lease), now=life.now)
    assert rang(life)


def test_a_lease_does_not_go_to_a_card_that_was_taken_out_of_service_before_it_came(
    life: Life, plan: MovePlan, move: Move, lease: Lease
) -> None:
    until(life, plan, lease, S.STOPPING)
    Gpu.objects.filter(pk=move.to_gpu_id).update(closed_since=life.now)
    life.go(60)
    assert (is_home(lease, move), fresh(lease).state) == (True, S.ACTIVE)
    assert story(plan) == f"{MOVING} 1:returning 1:undone failed"
    assert moves(plan)[0].why == "the card it was to go to is no longer in service"
    no_contradiction(life)


@pytest.fixture
def far_apart(life: Life) -> tuple[Home, MovePlan]:
    """Two leases on a node each, and a plan that brings them together."""
    fleet(Rack("north-1", REGION, MODEL, nodes=2, cards_per_node=1))
    kestrel = home("Kestrel")
    apart(life, kestrel, kestrel, movable=True)
    return kestrel, accepted(life)


def lost_while_stopping(life: Life, plan: MovePlan) -> tuple[Lease, Move, Node]:
    move = moves(plan)[0]
    lease = Lease(pk=move.lease_id, tenant_id=move.tenant_id)
    until(life, plan, lease, S.STOPPING)
    node = Gpu.objects.select_related("node__cluster").get(pk=move.from_gpu_id).node
    set_node(node, NodeState.LOST, life)
    return lease, move, node


def test_a_lease_whose_node_is_lost_while_it_leaves_goes_on_at_its_next_place(
    life: Life, far_apart: tuple[Home, MovePlan]
) -> None:
    _, plan = far_apart
    lease, move, node = lost_while_stopping(life, plan)
    life.go(90)
    assert (fresh(lease).state, card_of(lease).pk) == (S.ACTIVE, move.to_gpu_id)
    assert story(plan).endswith("1:done done")
    with as_tenant(lease.tenant_id):
        left = lease.allocations.get(gpu=move.from_gpu_id, released_at=None)
    assert left.leaving_since is not None  # nobody has proven it empty yet
    no_contradiction(life)
    set_node(node, NodeState.READY, life)
    life.go(60)
    assert [each.gpu_id for each in held(lease)] == [move.to_gpu_id]
    with as_tenant(lease.tenant_id):
        assert not lease.allocations.filter(gpu=move.from_gpu_id, released_at=None).exists()
    no_contradiction(life)


def test_a_lease_with_a_volume_waits_for_its_lost_node(life: Life, far_apart: tuple[Home, MovePlan]) -> None:
    kestrel, plan = far_apart
    with_volume(life, kestrel, Lease(pk=moves(plan)[0].lease_id, tenant_id=moves(plan)[0].tenant_id))
    lease, move, node = lost_while_stopping(life, plan)
    life.go(90)
    assert fresh(lease).state == S.STOPPING
    set_node(node, NodeState.READY, life)
    life.go(60)
    assert (fresh(lease).state, card_of(lease).pk) == (S.ACTIVE, move.to_gpu_id)
    no_contradiction(life)


def test_a_lease_that_has_lost_its_old_place_waits_for_another_when_the_next_does_not_take_it(
    life: Life, far_apart: tuple[Home, MovePlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, plan = far_apart
    lease, move, node = lost_while_stopping(life, plan)
    ensure = SimulatedProvisioner.ensure

    def not_there(self: SimulatedProvisioner, order: Order, **how: Any) -> Observation:
        if move.to_gpu_id in {each.gpu for each in order.slices}:
            return Observation(Seen.LOST, "its node does not take it", last_seen=how["now"])
        return ensure(self, order, **how)

    with monkeypatch.context() as broken:
        broken.setattr(SimulatedProvisioner, "ensure", not_there)
        life.go(90)
    assert moves(plan)[0].state == M.FAILED
    no_contradiction(life)
    set_node(node, NodeState.READY, life)
    life.go(180)
    assert fresh(lease).state == S.ACTIVE
    no_contradiction(life)


def test_a_lease_whose_nodes_are_both_lost_waits_where_it_is(
    life: Life, far_apart: tuple[Home, MovePlan]
) -> None:
    _, plan = far_apart
    lease, _, _ = lost_while_stopping(life, plan)
    for node in Node.objects.select_related("cluster"):
        if node.state != NodeState.LOST:
            inventory.set_node_state(node, NodeState.LOST, reason="a test", actor=OPERATOR, now=life.now)
    life.go(90)
    assert fresh(lease).state == S.STOPPING
    no_contradiction(life)
    assert Cluster.objects.count() == 1
    assert node_of(lease).state == NodeState.LOST


def test_a_stopping_lease_that_is_not_moved_is_not_carried_anywhere(life: Life, kestrel: Home) -> None:
    volume = life.volume(kestrel)
    still, _ = apart(life, kestrel, kestrel, volume="")
    with as_tenant(still.tenant_id):
        Lease.objects.filter(pk=still.pk).update(volume=volume)
    life.stop(still, kestrel)
    with as_tenant(still.tenant_id):
        Lease.objects.filter(pk=still.pk).update(volume=None)
    set_node(node_of(still), NodeState.LOST, life)
    life.go(90)
    assert fresh(still).state == S.STOPPING
