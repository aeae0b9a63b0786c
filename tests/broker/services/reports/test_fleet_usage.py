"""Use of every second of every unit of the fleet."""

from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.domain.lifecycle.states import LeaseState
from broker.models import Gpu, GpuHealth, Node, NodeState, Offering, OfferingState
from broker.services.inventory import hardware
from broker.services.reports import fleet_gpus, fleet_usage
from broker.services.reports.fleet_usage import FleetUsage, measure_fleet_usage
from broker.services.reports.gpu_usage import SCALE, UnitUse
from tenants.services.rls import staff_scope
from tests import simulation
from tests.simulation import OPERATOR, Simulation, TenantContext

pytestmark = pytest.mark.django_db
GPU_SECOND = SCALE  # one GPU for one second


def usage_of(sim: Simulation, seconds: int) -> FleetUsage:
    with staff_scope():
        return measure_fleet_usage(sim.now - timedelta(seconds=seconds), fleet_gpus.load_gpus(), now=sim.now)


def sold_seconds(*leases: object) -> int:
    """Count the active seconds of leases by their transitions."""
    total = 0
    for lease in leases:
        steps = simulation.transitions_of(lease)
        for step, then in zip(steps, [*steps[1:], None], strict=True):
            if step.after == LeaseState.ACTIVE and then is not None:
                total += int((then.at - step.at).total_seconds())
    return total


def test_an_idle_fleet_counts_every_gpu_second_as_free(sim: Simulation, kestrel: TenantContext) -> None:
    sim.run(100)
    seen = usage_of(sim, 100)
    assert seen.by_use[UnitUse.FREE] == seen.total == seen.sum_by_use == 4 * 100 * GPU_SECOND


def test_sold_seconds_equal_the_active_seconds_of_leases(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("whole-gpu"))
    sim.run(500)
    sim.release_lease(lease)
    sim.run(100)
    seen = usage_of(sim, 900)
    assert seen.by_use[UnitUse.SOLD] == sold_seconds(lease) * GPU_SECOND
    assert seen.by_use[UnitUse.RESERVED] > 0
    assert seen.sum_by_use == seen.total


def test_a_running_spot_lease_counts_as_spot_until_now(sim: Simulation, kestrel: TenantContext) -> None:
    begun = sim.create_lease(kestrel, simulation.offering("whole-gpu", price_class="spot")).active_at
    sim.run(300)
    seen = usage_of(sim, 10_000)
    assert seen.by_use[UnitUse.SPOT] == int((sim.now - begun).total_seconds()) * GPU_SECOND
    assert seen.by_use[UnitUse.SOLD] == 0


def test_a_slot_still_held_after_its_lease_ended_counts_once(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("whole-gpu"))
    sim.run(500)
    sim.release_lease(lease)
    seen = usage_of(sim, 900)
    assert simulation.reload_lease(lease).state == LeaseState.RELEASING
    assert seen.by_use[UnitUse.SOLD] == sold_seconds(lease) * GPU_SECOND
    assert seen.sum_by_use == seen.total


def test_only_usage_inside_the_window_counts(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("whole-gpu"))
    sim.run(1000)
    assert usage_of(sim, 60).by_use[UnitUse.SOLD] == 60 * GPU_SECOND
    sim.release_lease(lease)
    sim.run(2000)
    assert usage_of(sim, 60).by_use[UnitUse.SOLD] == 0


def test_a_lease_that_never_became_active_counts_as_reserved(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("whole-gpu"), LeaseState.PROVISIONING)
    sim.run(1)
    sim.release_lease(lease)
    sim.run(60)
    seen = usage_of(sim, 200)
    assert seen.by_use[UnitUse.SOLD] == 0
    assert seen.by_use[UnitUse.RESERVED] > 0
    assert seen.sum_by_use == seen.total


def test_units_that_no_offering_fits_count_as_fragmented(sim: Simulation, kestrel: TenantContext) -> None:
    one = simulation.offering("1g.10gb")
    Offering.objects.exclude(pk=one.pk).update(state=OfferingState.DRAFT)
    sim.run(100)
    assert usage_of(sim, 100).by_use[UnitUse.FRAGMENTED] == 4 * 100 * GPU_SECOND // 8
    sim.create_lease(kestrel, one)
    seen = usage_of(sim, 10)
    assert seen.by_use[UnitUse.FRAGMENTED] > 0
    assert seen.sum_by_use == seen.total


def test_outages_count_from_their_beginning_to_their_end(sim: Simulation, kestrel: TenantContext) -> None:
    node, gpu = Node.objects.get(), Gpu.objects.filter(index=1).get()
    sim.run(100)
    hardware.set_gpu_health(gpu, GpuHealth.UNHEALTHY, reason="XID 79", actor=OPERATOR, now=sim.now)
    sim.run(50)
    simulation.set_node_state(node, NodeState.CORDONED, sim)
    sim.run(30)
    simulation.set_node_state(node, NodeState.LOST, sim)
    sim.run(20)
    simulation.set_node_state(node, NodeState.READY, sim)
    hardware.set_gpu_health(gpu, GpuHealth.HEALTHY, reason="reseated", actor=OPERATOR, now=sim.now)
    sim.run(10)
    seen = usage_of(sim, 210)
    assert seen.by_use[UnitUse.UNHEALTHY] == (50 + 30 + 4 * 20) * GPU_SECOND
    assert seen.by_use[UnitUse.MAINTENANCE] == 3 * 30 * GPU_SECOND
    assert seen.by_use[UnitUse.FREE] == (4 * 100 + 3 * 50 + 4 * 10) * GPU_SECOND
    assert seen.sum_by_use == seen.total


def test_a_lease_on_a_node_out_of_service_is_sold_while_it_is_charged(sim: Simulation, kestrel: TenantContext) -> None:
    sim.create_lease(kestrel, simulation.offering("whole-gpu"))
    simulation.set_node_state(Node.objects.get(), NodeState.DRAINING, sim)
    sim.run(100)
    seen = usage_of(sim, 100)
    assert (seen.by_use[UnitUse.SOLD], seen.by_use[UnitUse.MAINTENANCE]) == (100 * GPU_SECOND, 300 * GPU_SECOND)


def test_an_outage_from_before_the_window_counts_from_the_window_start(sim: Simulation, kestrel: TenantContext) -> None:
    simulation.set_node_state(Node.objects.get(), NodeState.CORDONED, sim)
    sim.run(1000)
    assert usage_of(sim, 40).by_use[UnitUse.MAINTENANCE] == 4 * 40 * GPU_SECOND


def test_a_cluster_counts_from_when_it_was_added(sim: Simulation, kestrel: TenantContext) -> None:
    sim.run(50)
    simulation.create_fleet(
        simulation.SimulatedRack("west-2", "eu-west", "A100-80GB", nodes=1, gpus_per_node=2), now=sim.now
    )
    sim.run(10)
    assert usage_of(sim, 500).total == (4 * 60 + 2 * 10) * GPU_SECOND


def test_an_empty_window_has_no_usage(sim: Simulation, kestrel: TenantContext) -> None:
    seen = usage_of(sim, 0)
    assert (seen.total, seen.sum_by_use) == (0, 0)


def test_the_operators_day_begins_at_midnight_utc() -> None:
    assert fleet_usage.start_of_day(simulation.NOW).isoformat() == "2026-11-21T00:00:00+00:00"


@given(st.lists(st.integers(1, 400), min_size=1, max_size=12), st.integers(0, 600))
def test_state_spans_cover_the_window_without_gaps(gaps: list[int], start: int) -> None:
    end = start + 300
    at, changes = start, []
    for number, gap in enumerate(gaps):
        at += gap
        changes.append((at, str(number), str(number + 1)))
    spans = list(fleet_usage._spans(changes, str(len(gaps)), start, end))
    assert spans[0][0] == start
    assert spans[-1][1] == end
    assert all(before[1] == after[0] for before, after in pairwise(spans))
