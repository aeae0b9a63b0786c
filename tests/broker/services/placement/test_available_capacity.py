"""Counts and previews of available capacity."""

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Cluster, Gpu, LayoutPolicy
from broker.services.inventory.gpu_catalogue import gpu_model_spec
from broker.services.inventory.hardware import SimulatedRack
from broker.services.placement import available_capacity
from broker.services.placement.placement_gpus import geometry_from_layout
from tenants.services.rls import tenant_scope
from tests.simulation import (
    MODEL,
    REGION,
    Simulation,
    create_fleet,
    create_gpus,
    create_tenant,
    held_allocations,
    offering,
    soft_offering,
)

AVAILABLE = {"whole-gpu": 1, "7g.80gb": 1, "3g.40gb": 3, "1g.10gb": 11}  # on two GPUs, one with a 3g.40gb


@pytest.mark.parametrize("name", AVAILABLE)
def test_available_capacity_equals_the_number_of_leases_that_can_be_placed(sim: Simulation, name: str) -> None:
    create_gpus(2)
    kestrel = create_tenant()
    sim.create_lease(kestrel, offering("3g.40gb"))
    with tenant_scope(kestrel.tenant.pk):
        counts = available_capacity.count_available([offering(each) for each in AVAILABLE])
    assert list(counts.values()) == list(AVAILABLE.values())
    leases = [sim.request_lease(kestrel, offering(name)) for _ in range(AVAILABLE[name] + 1)]
    sim.run()
    assert [bool(held_allocations(lease)) for lease in leases] == [True] * AVAILABLE[name] + [False]


def test_a_preview_reserves_nothing_and_matches_the_later_placement(sim: Simulation) -> None:
    create_fleet(SimulatedRack("north-1", REGION, MODEL, nodes=2, gpus_per_node=2))
    kestrel = create_tenant()
    sim.create_lease(kestrel, offering("1g.10gb"))
    with tenant_scope(kestrel.tenant.pk):
        seen = available_capacity.preview_placement(offering("3g.40gb"))
    assert seen
    assert kestrel.quota_used() == 1000
    lease = sim.create_lease(kestrel, offering("3g.40gb"), LeaseState.PROVISIONING)
    assert [(p.gpu_id, p.placement.lower) for p in held_allocations(lease)] == [
        (s.gpu, s.placement.start) for s in seen.slots
    ]


def test_a_preview_without_capacity_is_none(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    with tenant_scope(kestrel.tenant.pk):
        assert available_capacity.preview_placement(offering("whole-gpu"), quantity=2) is None


def test_a_preview_shows_only_the_profile_of_others_leases(sim: Simulation) -> None:
    create_gpus(1)
    kestrel, swift = create_tenant("Kestrel"), create_tenant("Swift")
    sim.create_lease(kestrel, offering("1g.10gb"))
    with tenant_scope(swift.tenant.pk):
        seating = available_capacity.preview_placement(offering("1g.10gb"))
    assert seating
    (gpu,) = seating.gpus.values()
    assert [(profile, mine) for profile, _, mine in gpu.held] == [("1g.10gb", False)]


def test_unhealthy_gpus_are_not_counted_as_available(sim: Simulation) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    sim.create_lease(kestrel, offering("1g.10gb"))
    Gpu.objects.update(health="unhealthy")
    with tenant_scope(kestrel.tenant.pk):
        assert available_capacity.count_available([offering("1g.10gb")]) == {offering("1g.10gb").pk: 0}


def test_the_maximum_of_fixed_layout_gpus_follows_their_layout(sim: Simulation) -> None:
    create_gpus(2)
    layout = [{"profile": "3g.40gb", "start": 0, "size": 4}]
    Gpu.objects.update(layout_policy=LayoutPolicy.FIXED, fixed_layout=layout)
    assert available_capacity.max_when_empty(offering("3g.40gb"), quantity=9, same_node=False) == 2
    assert available_capacity.max_when_empty(offering("1g.10gb"), quantity=9, same_node=True) == 0


def test_a_layout_invalid_for_its_model_raises_a_clear_error(sim: Simulation) -> None:
    create_gpus(1)
    with pytest.raises(ValueError, match=r"3g\.40gb cannot start at unit 1"):
        geometry_from_layout(gpu_model_spec(MODEL), [{"profile": "3g.40gb", "start": 1, "isolation": "hardware"}])


def test_availability_of_several_pools_is_counted_in_three_queries(
    sim: Simulation, django_assert_num_queries: object
) -> None:
    create_fleet(
        SimulatedRack("north-1", REGION, MODEL, nodes=1),
        SimulatedRack("south-1", "eu-south", "A100-80GB", nodes=1),
    )
    requests = [offering("whole-gpu"), offering("whole-gpu", model="A100-80GB"), soft_offering()]
    kestrel = create_tenant()
    with tenant_scope(kestrel.tenant.pk):
        available_capacity.count_available([])
        with django_assert_num_queries(3):  # type: ignore[operator]  # what changed, those GPUs, and which are ours
            assert sorted(available_capacity.count_available(requests).values()) == [8, 8, 32]


def test_a_gang_is_placed_in_the_smallest_cluster_that_fits_it(sim: Simulation) -> None:
    create_fleet(
        SimulatedRack("north-1", REGION, MODEL, nodes=1, gpus_per_node=4),
        SimulatedRack("north-2", REGION, MODEL, nodes=2, gpus_per_node=1),
        SimulatedRack("north-3", REGION, MODEL, nodes=1, gpus_per_node=1),
    )
    gpu, kestrel = offering("whole-gpu"), create_tenant()

    def clusters(quantity: int) -> set[str]:
        with tenant_scope(kestrel.tenant.pk):
            seating = available_capacity.preview_placement(gpu, quantity=quantity)
        return {each.cluster for each in seating.gpus.values()} if seating else set()

    assert [clusters(quantity) for quantity in (2, 3, 5)] == [{"north-2"}, {"north-1"}, set()]
    assert available_capacity.max_when_empty(gpu, quantity=9, same_node=False) == 4


@pytest.mark.parametrize(
    ("driver", "shares"), [("", 4), ("hami", 4), ("dra", 0), ("device_plugin", 0)], ids=lambda found: str(found)
)
def test_shares_of_an_unpartitioned_gpu_are_sold_only_if_its_driver_creates_them(
    sim: Simulation, driver: str, shares: int
) -> None:
    """Soft shares exist with HAMi or without a driver, not with DRA or device plugin."""
    create_gpus(1)
    quarter, kestrel = soft_offering(), create_tenant()
    Cluster.objects.update(driver=driver)
    with tenant_scope(kestrel.tenant.pk):
        assert available_capacity.count_available([quarter]) == {quarter.pk: shares}
        assert (available_capacity.preview_placement(quarter) is not None) is bool(shares)
    assert available_capacity.max_when_empty(quarter, quantity=1, same_node=False) == shares


@pytest.mark.parametrize(("driver", "there"), [("dra", 1), ("hami", 1), ("device_plugin", 0)])
def test_an_unpartitioned_gpu_is_sold_whole_only_if_its_driver_supports_it(
    sim: Simulation, driver: str, there: int
) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    Cluster.objects.update(driver=driver)
    with tenant_scope(kestrel.tenant.pk):
        assert available_capacity.count_available([offering("whole-gpu")]) == {offering("whole-gpu").pk: there}


def test_repartitionable_nodes_never_offer_shares(sim: Simulation) -> None:
    create_gpus(1)
    whole = [{"profile": "whole-gpu", "start": 0, "size": 8, "isolation": "device"}]
    Gpu.objects.update(layout_policy=LayoutPolicy.FIXED, fixed_layout=whole)
    Cluster.objects.update(auto_repartition=True)
    assert available_capacity.max_when_empty(soft_offering(), quantity=1, same_node=False) == 0
    assert available_capacity.max_when_empty(offering("1g.10gb"), quantity=1, same_node=False) == 7


def test_nodes_exposing_slices_as_nvidia_com_gpu_are_never_repartitioned(sim: Simulation) -> None:
    create_gpus(1)
    halves = [{"profile": "3g.40gb", "start": start, "size": 4, "resource_name": "nvidia.com/gpu"} for start in (0, 4)]
    Gpu.objects.update(layout_policy=LayoutPolicy.FIXED, fixed_layout=halves)
    Cluster.objects.update(auto_repartition=True)
    assert available_capacity.max_when_empty(offering("3g.40gb"), quantity=1, same_node=False) == 2
    assert available_capacity.max_when_empty(offering("1g.10gb"), quantity=1, same_node=False) == 0


def test_the_maximum_of_one_cluster_counts_only_its_own_gpus(sim: Simulation) -> None:
    create_fleet(
        SimulatedRack("north-1", REGION, MODEL, nodes=1, gpus_per_node=4),
        SimulatedRack("north-2", REGION, MODEL, nodes=1),
    )
    Gpu.objects.filter(node__cluster__name="north-2").update(health="unhealthy")
    values = {
        name: available_capacity.max_when_empty(offering("whole-gpu"), quantity=9, same_node=False, cluster=name)
        for name in ("north-1", "north-2")
    }
    assert values == {"north-1": 4, "north-2": 8}
    in_service = available_capacity.max_when_empty(offering("whole-gpu"), quantity=9, same_node=False, in_service=True)
    assert in_service == 4
