"""The operators' GPU list: tenant, start and free slices of every GPU."""

import pytest

from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.models import Gpu, GpuHealth, LayoutPolicy, Node, NodeState, Offering, OfferingState
from broker.services.inventory import gpu_catalogue, hardware
from broker.services.reports import fleet_gpus, fleet_summary
from broker.services.reports.gpu_usage import SCALE, FleetGpu, UnitUse, gpus_by_use, scaled
from tenants.services.rls import staff_scope
from tests import simulation
from tests.simulation import OPERATOR, Simulation, TenantContext

pytestmark = pytest.mark.django_db


def load(**which: str) -> list[FleetGpu]:
    with staff_scope():
        return fleet_gpus.load_gpus(**which)


def uses(gpu: FleetGpu) -> list[tuple[int, int, UnitUse]]:
    return [(run.start, run.size, run.use) for run in gpu.unit_runs]


def test_a_gpu_shows_each_slice_with_its_start_and_tenant(sim: Simulation, kestrel: TenantContext) -> None:
    tern = simulation.create_tenant("Tern")
    first = sim.create_lease(kestrel, simulation.offering("3g.40gb"))
    second = sim.create_lease(tern, simulation.offering("1g.10gb", price_class="spot"))
    gpu = next(gpu for gpu in load() if gpu.slices)
    by_lease = {run.slice.lease: run for run in gpu.unit_runs if run.slice}
    held = {
        place.lease_id: place.placement for lease in (first, second) for place in simulation.held_allocations(lease)
    }
    for lease, use, name in ((first, UnitUse.SOLD, "Kestrel"), (second, UnitUse.SPOT, "Tern")):
        run = by_lease[lease.pk]
        assert (run.start, run.start + run.size) == (held[lease.pk].lower, held[lease.pk].upper)
        assert (run.use, run.slice.tenant_name, run.slice.since) == (use, name, lease.active_at)
    assert sum(run.size for run in gpu.unit_runs) == gpu.grid


def test_a_provisioning_lease_is_shown_as_reserved(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("7g.80gb"), LeaseState.PROVISIONING)
    (gpu,) = [gpu for gpu in load() if gpu.slices]
    assert uses(gpu) == [(0, 8, UnitUse.RESERVED)]
    assert [s.since for s in gpu.slices] == [place.held_at for place in simulation.held_allocations(lease)]


def test_units_that_no_published_offering_fits_are_fragmented(sim: Simulation, kestrel: TenantContext) -> None:
    Offering.objects.exclude(profile="3g.40gb").update(state=OfferingState.DRAFT)
    one = simulation.offering("1g.10gb")
    Offering.objects.filter(pk=one.pk).update(state=OfferingState.PUBLISHED)
    sim.create_lease(kestrel, one)
    Offering.objects.filter(pk=one.pk).update(state=OfferingState.RETIRED)
    (gpu,) = [gpu for gpu in load() if gpu.slices]
    assert gpu.units(UnitUse.FRAGMENTED) == 3
    assert gpu.units(UnitUse.FREE) == 4
    assert gpu.units(UnitUse.SOLD) == 1


def test_gpus_without_a_published_offering_are_fragmented(kestrel: TenantContext) -> None:
    Offering.objects.update(state=OfferingState.DRAFT)
    assert {use for gpu in load() for _, _, use in uses(gpu)} == {UnitUse.FRAGMENTED}


def test_a_fixed_layout_gpu_shows_units_outside_its_layout_as_fragmented(kestrel: TenantContext) -> None:
    Gpu.objects.filter(index=0).update(
        layout_policy=LayoutPolicy.FIXED, fixed_layout=[{"profile": "3g.40gb", "start": 4, "size": 4}]
    )
    assert uses(load()[0]) == [(0, 4, UnitUse.FRAGMENTED), (4, 4, UnitUse.FREE)]


@pytest.mark.parametrize(
    ("state", "use"),
    [
        (NodeState.CORDONED, UnitUse.MAINTENANCE),
        (NodeState.DRAINING, UnitUse.MAINTENANCE),
        (NodeState.LOST, UnitUse.UNHEALTHY),
    ],
)
def test_free_units_of_a_node_out_of_service_show_its_state(
    sim: Simulation, kestrel: TenantContext, state: NodeState, use: UnitUse
) -> None:
    simulation.set_node_state(Node.objects.get(), state, sim)
    assert {each.idle_use for each in load()} == {use}
    assert {u for gpu in load() for _, _, u in uses(gpu)} == {use}


def test_a_lease_on_an_unhealthy_gpu_is_sold_and_its_free_units_are_unhealthy(
    sim: Simulation, kestrel: TenantContext
) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("3g.40gb"))
    gpu = Gpu.objects.get(pk=simulation.held_allocations(lease)[0].gpu_id)
    hardware.set_gpu_health(gpu, GpuHealth.UNHEALTHY, reason="XID 79", actor=OPERATOR, now=sim.now)
    (loaded,) = load(gpu=gpu.pk)
    assert (loaded.units(UnitUse.SOLD), loaded.units(UnitUse.UNHEALTHY), loaded.health_reason) == (4, 4, "XID 79")


def test_a_released_lease_leaves_its_gpu_free(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, simulation.offering("7g.80gb"))
    sim.release_lease(lease, EndReason.BY_TENANT)
    sim.run(60)
    assert all(not gpu.slices for gpu in load())


def test_the_gpu_list_can_be_limited_to_one_node_or_gpu(sim: Simulation, kestrel: TenantContext) -> None:
    simulation.create_fleet(hardware.SimulatedRack("west-2", "eu-west", "A100-80GB", nodes=1, gpus_per_node=2))
    node = Node.objects.get(cluster__name="west-2")
    assert [gpu.location for gpu in load(node=node.pk)] == ["west-2 / n01 / GPU 0", "west-2 / n01 / GPU 1"]
    assert len(load(gpu=Gpu.objects.filter(node=node).first().pk)) == 1
    assert load(gpu="gpu_nobody") == []


def test_usage_of_all_gpus_adds_up_to_the_fleet_summary(sim: Simulation, kestrel: TenantContext) -> None:
    sim.create_lease(kestrel, simulation.offering("2g.20gb"))
    total = gpus_by_use(load())
    assert sum(total.values()) == 4 * SCALE
    assert total[UnitUse.SOLD] == scaled(2, 8)
    with staff_scope():
        seen = fleet_summary.load_summary()
    assert seen == fleet_summary.summarise(load())
    assert (seen.clusters, seen.gpus, seen.active, seen.tenants, seen.sold) == (
        1,
        4,
        1,
        1,
        total[UnitUse.SOLD],
    )
    assert seen.sold_permille == 63  # 2 of 32 units


def test_an_empty_fleet_has_zero_gpus_and_zero_sold(db: None) -> None:
    with staff_scope():
        seen = fleet_summary.load_summary()
    assert (seen.gpus, seen.sold_permille) == (0, 0)


def test_every_gpu_model_grid_divides_the_scale() -> None:
    assert [spec.name for spec in gpu_catalogue.gpu_model_specs().values() if SCALE % spec.grid] == []
