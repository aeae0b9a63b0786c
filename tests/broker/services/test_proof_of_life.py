"""Nothing after the last proof of life is charged, however late somebody looks."""

from datetime import timedelta

from broker.models import Lease, NodeState, SimulatedPod
from broker.services.leases.ticks import tick
from tenants.services.walls import as_tenant
from tests.world import Life, cards, fresh, home, ledger, node_of, offering, set_node

HOUR = timedelta(hours=1)


def runs_an_hour(life: Life) -> Lease:
    cards(1)
    return fresh(life.lease(home(), offering(), max_duration_s=3600))


def away(life: Life, length: timedelta) -> None:
    """Let time pass without workers: every hint until then is lost."""
    life.hints.clear()
    life.clock.at += length


def test_what_was_lost_before_its_end_is_charged_to_its_loss_though_nobody_looked(life: Life) -> None:
    lease = runs_an_hour(life)
    away(life, timedelta(seconds=60))
    lost = life.now.replace(microsecond=0)
    set_node(node_of(lease), NodeState.LOST, life)
    away(life, 2 * HOUR)
    life.sweep()
    life.go(60)
    ended = fresh(lease)
    assert (ended.state, ended.end_reason, ended.ended_at) == ("released", "device_lost", lost)
    assert "lost contact" in ledger(lease)[-2].cause


def test_what_was_lost_long_before_its_end_while_nobody_looked_is_charged_to_its_loss(life: Life) -> None:
    lease = runs_an_hour(life)
    away(life, timedelta(seconds=60))
    lost = life.now.replace(microsecond=0)
    set_node(node_of(lease), NodeState.LOST, life)
    away(life, timedelta(minutes=20))
    life.sweep()
    life.run(1)
    ended = fresh(lease)
    assert (ended.state, ended.end_reason, ended.ended_at) == ("released", "device_lost", lost)


def test_what_was_lost_after_its_end_is_charged_to_its_end(life: Life) -> None:
    lease = runs_an_hour(life)
    node = node_of(lease)
    away(life, HOUR + timedelta(seconds=60))
    set_node(node, NodeState.LOST, life)
    away(life, HOUR)
    life.sweep()
    life.go(60)
    assert (fresh(lease).end_reason, fresh(lease).ended_at) == ("expired", lease.ends_at)


def test_a_pod_that_vanished_before_its_end_is_charged_to_when_it_was_seen_last(life: Life) -> None:
    lease = runs_an_hour(life)
    life.go(600)
    SimulatedPod.objects.all().delete()
    seen = fresh(lease).seen_at
    away(life, 2 * HOUR)
    life.sweep()
    assert seen
    assert (fresh(lease).end_reason, fresh(lease).ended_at) == ("device_lost", seen.replace(microsecond=0))


def test_a_tenant_who_lets_go_of_an_unreachable_lease_pays_up_to_its_last_sign(life: Life) -> None:
    lease = runs_an_hour(life)
    life.run(60)
    lost = life.now.replace(microsecond=0)
    set_node(node_of(lease), NodeState.LOST, life)
    life.run(20)
    assert "unreachable" in fresh(lease).conditions
    life.release(lease)
    assert (fresh(lease).end_reason, fresh(lease).ended_at) == ("by_tenant", lost)


def test_no_tick_goes_beyond_the_last_proof_of_life(life: Life) -> None:
    lease = runs_an_hour(life)
    assert lease.active_at
    with as_tenant(lease.tenant_id):
        assert not tick(fresh(lease), at=lease.active_at + timedelta(seconds=600))
    life.go(900)
    with as_tenant(lease.tenant_id):
        assert tick(fresh(lease), at=lease.active_at + timedelta(seconds=600))


def test_an_extended_lease_is_looked_at_as_often_as_before(life: Life) -> None:
    from broker.services.leases.growing import extend

    lease = runs_an_hour(life)
    with as_tenant(lease.tenant_id):
        extend(lease, more_s=10 * 3600, actor=home("Swift").actor, now=life.now)
    assert fresh(lease).due_at == lease.due_at
