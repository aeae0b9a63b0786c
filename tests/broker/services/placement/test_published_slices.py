"""Capacity of GPUs that publish only some of their profiles."""

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.models import Cluster, Gpu, Offering
from broker.services.inventory import gpu_catalogue
from broker.services.placement import available_capacity
from broker.services.placement.shared_index import current_index
from broker.services.placement.slot_search import PlacementRequest
from broker.services.queue.lease_placement import explain_waiting
from broker.services.relocation.relocation_pools import load_relocation_pools
from broker.services.reports.fleet_gpus import load_gpus
from tenants.services.rls import staff_scope, tenant_scope
from tests.broker.services.relocation.scattered_leases import propose_plan, relocations_of, scatter_leases
from tests.simulation import NOW, Simulation, create_gpus, create_tenant, held_allocations, offering, reload_lease

ONES = {"1g.10gb": [2, 3], "whole-gpu": [0]}


@pytest.fixture
def partly_published(sim: Simulation) -> None:
    """Two GPUs, the first of which publishes two small slices and itself."""
    create_gpus(2)
    Gpu.objects.filter(index=0).update(published=ONES)


@pytest.mark.usefixtures("partly_published")
def test_an_unpublished_profile_is_neither_available_nor_previewed() -> None:
    kestrel = create_tenant()
    requests = [offering(name) for name in ("whole-gpu", "3g.40gb", "1g.10gb")]
    with tenant_scope(kestrel.tenant.pk):
        assert list(available_capacity.count_available(requests).values()) == [2, 2, 9]
        Gpu.objects.update(published=ONES)
        assert list(available_capacity.count_available(requests).values()) == [2, 0, 4]
        assert available_capacity.preview_placement(offering("3g.40gb")) is None
    assert available_capacity.max_when_empty(offering("3g.40gb"), quantity=2, same_node=False) == 0
    Cluster.objects.update(
        auto_repartition=True
    )  # repartitions nodes by a label, never GPUs that are partitioned per lease
    assert available_capacity.max_when_empty(offering("3g.40gb"), quantity=2, same_node=False) == 0


@pytest.mark.usefixtures("partly_published")
def test_slices_are_placed_only_where_their_gpu_publishes_them(sim: Simulation) -> None:
    kestrel = create_tenant()
    Gpu.objects.filter(index=1).update(health="unhealthy")
    small = [sim.create_lease(kestrel, offering("1g.10gb")) for _ in range(2)]
    assert sorted(held_allocations(lease)[0].placement.lower for lease in small) == [2, 3]
    third = sim.request_lease(kestrel, offering("1g.10gb"))
    sim.run()
    assert reload_lease(third).state == LeaseState.QUEUED


def waiting_reason(what: Offering) -> str:
    with current_index() as stock:
        return explain_waiting(PlacementRequest(what), stock)


@pytest.mark.usefixtures("partly_published")
def test_a_lease_of_an_unpublished_profile_waits_with_a_reason_until_published(sim: Simulation) -> None:
    kestrel = create_tenant()
    Gpu.objects.update(published=ONES)
    lease = sim.request_lease(kestrel, offering("3g.40gb"))
    sim.run()
    text = (
        "Waits for H100 SXM 80GB 3g.40gb: no GPU in eu-north can be partitioned for it now; GPUs that are partitioned"
        " per lease"
    )
    assert reload_lease(lease).state == LeaseState.QUEUED
    assert reload_lease(lease).pending_reason == f"{text} do not offer it." == waiting_reason(offering("3g.40gb"))
    Gpu.objects.update(published=None)
    sim.sweep()
    sim.run(30)
    assert reload_lease(lease).state == LeaseState.ACTIVE


def test_a_lease_keeps_a_slice_that_its_gpu_no_longer_publishes(
    sim: Simulation,
) -> None:
    create_gpus(1)
    kestrel = create_tenant()
    lease = sim.create_lease(kestrel, offering("3g.40gb"))
    Gpu.objects.update(published={"1g.10gb": [0, 1, 4, 5]})
    for _ in range(3):
        sim.sweep()
        sim.run(120)
    assert reload_lease(lease).state == LeaseState.ACTIVE
    start = held_allocations(lease)[0].placement.lower
    with tenant_scope(kestrel.tenant.pk):
        counts = available_capacity.count_available([offering("3g.40gb"), offering("1g.10gb")])
    assert list(counts.values()) == [0, 2]
    sim.release_lease(lease)
    sim.run(30)
    with tenant_scope(kestrel.tenant.pk):
        assert available_capacity.count_available([offering("1g.10gb")]) == {offering("1g.10gb").pk: 4}
    assert start in (0, 4)


@pytest.mark.usefixtures("partly_published")
def test_offerings_are_drafted_only_for_published_profiles(sim: Simulation) -> None:
    Offering.objects.all().delete()
    Gpu.objects.update(published=ONES)
    assert gpu_catalogue.derive_offerings(now=NOW) == 4  # on demand and spot
    assert set(Offering.objects.values_list("profile", flat=True)) == {"whole-gpu", "1g.10gb"}
    Gpu.objects.filter(index=1).update(published=None)
    gpu_catalogue.derive_offerings(now=NOW)
    assert Offering.objects.filter(profile="3g.40gb").exists()


@pytest.mark.usefixtures("partly_published")
def test_unpublished_placements_count_as_unsellable(sim: Simulation) -> None:
    kestrel = create_tenant()
    Gpu.objects.update(published={"1g.10gb": [2, 3]})
    sim.create_lease(kestrel, offering("1g.10gb"))
    with staff_scope():
        lost = {gpu.index: gpu.sellable.unsellable_units(gpu.state).bit_count() for gpu in load_gpus()}
    assert sorted(lost.values()) == [6, 6]


@pytest.mark.usefixtures("partly_published")
def test_relocation_pools_contain_gpus_with_the_same_published_profiles(sim: Simulation) -> None:
    Cluster.objects.update(driver="dra")
    pools = load_relocation_pools(Cluster.objects.get(), now=sim.now)
    assert [[gpu.index for gpu in pool.gpus] for pool in pools] == [[0], [1]]


def test_relocations_are_planned_in_the_pool_with_the_largest_gain(sim: Simulation) -> None:
    create_gpus(3)
    partly_published = Gpu.objects.filter(index=0)
    partly_published.update(published=ONES, health="unhealthy")
    scatter_leases(sim, create_tenant("Kestrel"), create_tenant("Swift"), relocatable=True)
    partly_published.update(health="healthy")
    assert [len(pool.gpus) for pool in load_relocation_pools(Cluster.objects.get(), now=sim.now)] == [1, 2]
    (move,) = relocations_of(propose_plan(sim))
    assert {move.from_gpu.index, move.to_gpu.index} == {1, 2}
