"""Price classes, and gangs over GPUs and nodes."""

import pytest

from tests.cluster.behaviours.world import World
from tests.controlplane.nodes import GpuNode

MIG = GpuNode(gpus=1, cut=1, mig={"1g.10gb": 4})
SHAPES = {"whole-gpu": GpuNode(gpus=2), "1g.10gb": MIG}


@pytest.mark.parametrize("price_class", ["on_demand", "spot", "reserved"])
@pytest.mark.parametrize("profile", SHAPES)
def test_each_price_class_runs(profile: str, price_class: str, world: World) -> None:
    world.add_cluster(SHAPES[profile])
    world.end(world.run(world.add_tenant(), world.offering(profile, price_class=price_class)))


def test_leases_of_all_price_classes_share_one_gpu(world: World) -> None:
    world.add_cluster(MIG)
    kestrel = world.add_tenant()
    classes = ("on_demand", "spot", "reserved", "spot")
    sold = [world.offering("1g.10gb", price_class=each) for each in classes]
    world.until_all([world.request_lease(kestrel, what) for what in sold], "active")


def test_a_running_spot_lease_is_not_evicted_for_an_on_demand_lease(world: World) -> None:
    world.add_cluster(GpuNode(gpus=1))
    kestrel = world.add_tenant()
    first = world.run(kestrel, world.offering(price_class="spot"))
    second = world.request_lease(kestrel, world.offering())
    world.wait(30)
    assert world.pending_reason(second)
    world.end(first)
    world.until(second, "active")


@pytest.mark.parametrize("quantity", [1, 2, 4])
def test_a_lease_gets_several_gpus_of_one_node(quantity: int, world: World) -> None:
    world.add_cluster(GpuNode(gpus=4))
    lease = world.run(world.add_tenant(), world.offering(), quantity=quantity, same_node=True)
    world.check_limits(lease, gpu=str(quantity))
    world.end(lease)


def test_a_gang_is_spread_over_nodes_when_one_has_too_few_gpus(world: World) -> None:
    world.add_cluster(GpuNode(gpus=2), GpuNode(gpus=2))
    lease = world.run(world.add_tenant(), world.offering(), quantity=4)
    world.check_limits(lease, gpu="4")
    world.end(lease)


def test_slices_of_several_gpus_are_leased_together(world: World) -> None:
    world.add_cluster(GpuNode(gpus=2, cut=2, mig={"3g.40gb": 4}))
    lease = world.run(world.add_tenant(), world.offering("3g.40gb"), quantity=4)
    world.check_limits(lease, mig_3g__40gb="4")


def test_a_gang_waits_until_all_its_gpus_are_free(world: World) -> None:
    world.add_cluster(GpuNode(gpus=2), GpuNode(gpus=2))
    kestrel, what = world.add_tenant(), world.offering()
    single = world.run(kestrel, what)
    gang = world.request_lease(kestrel, what, quantity=4)
    world.wait(30)
    assert world.pending_reason(gang)
    world.record(world.pending_reason(gang))
    world.end(single)
    world.until(gang, "active")


def test_the_second_of_two_gangs_waits_for_the_first(world: World) -> None:
    world.add_cluster(GpuNode(gpus=2))
    kestrel, what = world.add_tenant(), world.offering()
    first = world.run(kestrel, what, quantity=2)
    second = world.request_lease(kestrel, what, quantity=2)
    world.end(first)
    world.until(second, "active")


def test_a_quantity_above_the_fleets_gpus_is_refused(world: World) -> None:
    world.add_cluster(GpuNode(gpus=2))
    kestrel, what = world.add_tenant(), world.offering()
    assert world.refused(lambda: world.request_lease(kestrel, what, quantity=3)).code == "placement-impossible"


def test_a_same_node_quantity_above_a_nodes_gpus_is_refused(world: World) -> None:
    world.add_cluster(GpuNode(gpus=2), GpuNode(gpus=2))
    kestrel, what = world.add_tenant(), world.offering()
    assert world.refused(lambda: world.request_lease(kestrel, what, quantity=3, same_node=True)).status == 422
    world.run(kestrel, what, quantity=3)
