"""Charges of leases that are reconciled late."""

from datetime import timedelta

import pytest

from broker.models import Lease, NodeState, SimulatedPod
from tenants.services.rls import tenant_scope
from tests.simulation import (
    Simulation,
    create_gpus,
    create_tenant,
    node_of,
    offering,
    reload_lease,
    set_node_state,
    transitions_of,
)

HOUR = timedelta(hours=1)


def create_one_hour_lease(sim: Simulation) -> Lease:
    create_gpus(1)
    return reload_lease(sim.create_lease(create_tenant(), offering(), max_duration_s=3600))


def pass_time_without_workers(sim: Simulation, length: timedelta) -> None:
    """Let time pass without workers; all enqueued messages are lost."""
    sim.messages.clear()
    sim.clock.at += length


def test_a_lease_lost_before_its_end_is_charged_until_its_loss(sim: Simulation) -> None:
    lease = create_one_hour_lease(sim)
    pass_time_without_workers(sim, timedelta(seconds=60))
    lost = sim.now.replace(microsecond=0)
    set_node_state(node_of(lease), NodeState.LOST, sim)
    pass_time_without_workers(sim, 2 * HOUR)
    sim.sweep()
    sim.run_with_sweeps(60)
    ended = reload_lease(lease)
    assert (ended.state, ended.end_reason, ended.ended_at) == ("released", "device_lost", lost)
    assert "is unreachable" in transitions_of(lease)[-2].cause


def test_a_lease_lost_long_before_its_end_is_charged_until_its_loss(sim: Simulation) -> None:
    lease = create_one_hour_lease(sim)
    pass_time_without_workers(sim, timedelta(seconds=60))
    lost = sim.now.replace(microsecond=0)
    set_node_state(node_of(lease), NodeState.LOST, sim)
    pass_time_without_workers(sim, timedelta(minutes=20))
    sim.sweep()
    sim.run(1)
    ended = reload_lease(lease)
    assert (ended.state, ended.end_reason, ended.ended_at) == ("released", "device_lost", lost)


def test_a_lease_lost_after_its_end_is_charged_until_its_end(sim: Simulation) -> None:
    lease = create_one_hour_lease(sim)
    node = node_of(lease)
    pass_time_without_workers(sim, HOUR + timedelta(seconds=60))
    set_node_state(node, NodeState.LOST, sim)
    pass_time_without_workers(sim, HOUR)
    sim.sweep()
    sim.run_with_sweeps(60)
    assert (reload_lease(lease).end_reason, reload_lease(lease).ended_at) == ("expired", lease.ends_at)


def test_a_lease_whose_pod_vanished_is_charged_until_last_seen(sim: Simulation) -> None:
    lease = create_one_hour_lease(sim)
    sim.run_with_sweeps(600)
    SimulatedPod.objects.all().delete()
    seen = reload_lease(lease).seen_at
    pass_time_without_workers(sim, 2 * HOUR)
    sim.sweep()
    assert seen
    assert (reload_lease(lease).end_reason, reload_lease(lease).ended_at) == (
        "device_lost",
        seen.replace(microsecond=0),
    )


def test_a_release_of_an_unreachable_lease_is_charged_to_last_seen(sim: Simulation) -> None:
    lease = create_one_hour_lease(sim)
    sim.run(60)
    lost = sim.now.replace(microsecond=0)
    set_node_state(node_of(lease), NodeState.LOST, sim)
    sim.run(20)
    assert "unreachable" in reload_lease(lease).conditions
    sim.release_lease(lease)
    assert (reload_lease(lease).end_reason, reload_lease(lease).ended_at) == ("by_tenant", lost)


@pytest.mark.deep
def test_a_metering_tick_never_exceeds_the_last_observation(sim: Simulation) -> None:
    lease = create_one_hour_lease(sim)
    assert lease.active_at
    with tenant_scope(lease.tenant_id):
        assert not reload_lease(lease).add_metering_tick(at=lease.active_at + timedelta(seconds=600))
    sim.run_with_sweeps(900)
    with tenant_scope(lease.tenant_id):
        assert reload_lease(lease).add_metering_tick(at=lease.active_at + timedelta(seconds=600))


def test_an_extension_keeps_the_due_time_of_an_active_lease(sim: Simulation) -> None:
    from broker.services.leases.lifecycle.extension import extend_lease

    lease = create_one_hour_lease(sim)
    with tenant_scope(lease.tenant_id):
        extend_lease(lease, more_s=10 * 3600, actor=create_tenant("Swift").actor, now=sim.now)
    assert reload_lease(lease).due_at == lease.due_at
