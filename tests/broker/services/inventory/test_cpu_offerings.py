"""CPU-only offerings: blocks of simulated nodes, derived amounts, edits and shortages."""

from dataclasses import replace

import pytest

from broker.domain.geometry.cpu_blocks import CPU_MODEL_NAME
from broker.domain.geometry.host_resources import UNKNOWN, HostResources
from broker.domain.lifecycle.states import LeaseState
from broker.models import Gpu, GpuHealth, Node, Offering
from broker.services.inventory import offering_admin, offering_resources
from broker.services.inventory.gpu_matching import NOT_REPORTED
from broker.services.inventory.hardware import SIMULATED_CPU_NODE
from tenants.services.errors import InvalidValue
from tests.simulation import (
    NOW,
    OPERATOR,
    Simulation,
    create_cpu_nodes,
    create_tenant,
    held_allocations,
    offering,
    reload_lease,
)

PROFILES = ("2vcpu", "4vcpu", "8vcpu", "16vcpu")
ODD_NODE = HostResources(cpu_milli=23_900, memory_mib=90_112, scratch_mib=112_640)  # eleven units: 8 and 3


def cpu_offering(profile: str = "4vcpu", price_class: str = "on_demand") -> Offering:
    return offering(profile, price_class=price_class, model=CPU_MODEL_NAME)


def set_resources(profile: str, **changes: int) -> Offering:
    target = cpu_offering(profile)
    wanted = replace(target.host_resources, **changes)
    return offering_admin.set_offering_resources(target, wanted, actor=OPERATOR, now=NOW)


def node() -> Node:
    return Node.objects.get()


def test_a_simulated_cpu_node_has_a_block_for_each_16_vcpus(sim: Simulation) -> None:
    create_cpu_nodes(2)
    blocks = Gpu.objects.order_by("node__name", "index").values_list("node__name", "index", "published")
    assert list(blocks) == [("n01", 0, None), ("n01", 1, None), ("n02", 0, None), ("n02", 1, None)]
    assert {each.host_resources for each in Node.objects.all()} == {SIMULATED_CPU_NODE}
    assert Gpu.objects.values("uuid").distinct().count() == 4


def test_the_last_block_of_a_node_publishes_only_what_fits(sim: Simulation) -> None:
    create_cpu_nodes(cpu_node=ODD_NODE)
    assert Gpu.objects.get(index=1).published == {"2vcpu": [0, 1, 2], "4vcpu": [0]}


def test_every_size_is_offered_on_demand_and_as_spot_without_quota(sim: Simulation) -> None:
    create_cpu_nodes()
    found = Offering.objects.filter(gpu_model=CPU_MODEL_NAME)
    assert {(each.profile, each.price_class) for each in found} == {
        (profile, price_class) for profile in PROFILES for price_class in ("on_demand", "spot")
    }
    assert {(each.milli_units, each.memory_gb, each.isolation) for each in found} == {(0, 0, "hardware")}


def test_a_cpu_offering_brings_two_vcpus_a_unit_and_the_nodes_share(sim: Simulation) -> None:
    create_cpu_nodes()
    assert cpu_offering("2vcpu").host_resources == HostResources(2000, 8192, 12_288)
    assert cpu_offering("16vcpu").host_resources == HostResources(16_000, 65_536, 102_400)


def test_a_smaller_last_block_shares_by_the_units_that_exist(sim: Simulation) -> None:
    create_cpu_nodes(cpu_node=ODD_NODE)
    assert cpu_offering("2vcpu").host_resources == HostResources(2000, 8192, 10_240)
    assert cpu_offering("16vcpu").host_resources == HostResources(16_000, 65_536, 81_920)


def test_the_smallest_of_several_nodes_decides_memory_and_scratch(sim: Simulation) -> None:
    create_cpu_nodes(name="cpu-2", cpu_node=replace(SIMULATED_CPU_NODE, memory_mib=65_536))
    Offering.objects.all().delete()
    create_cpu_nodes()
    assert cpu_offering("4vcpu").host_resources == HostResources(4000, 8192, 25_600)


def test_a_cpu_node_that_reports_no_memory_counts_with_4_gib_a_vcpu(sim: Simulation) -> None:
    create_cpu_nodes(cpu_node=HostResources(cpu_milli=16_000))
    assert cpu_offering("2vcpu").host_resources == HostResources(2000, 8192, 12_288)


@pytest.mark.parametrize("profile", PROFILES)
def test_no_more_vcpus_than_its_size_can_be_promised(sim: Simulation, profile: str) -> None:
    create_cpu_nodes(cpu_node=ODD_NODE)
    largest = offering_resources.largest_resources(cpu_offering(profile))
    assert largest.cpu_milli == int(profile.removesuffix("vcpu")) * 1000
    with pytest.raises(InvalidValue, match="for each lease of this size"):
        set_resources(profile, cpu_milli=largest.cpu_milli + 1)


def test_memory_of_a_cpu_offering_can_be_edited_up_to_the_share(sim: Simulation) -> None:
    create_cpu_nodes()
    assert set_resources("4vcpu", memory_mib=12_288).host_resources.memory_mib == 12_288
    with pytest.raises(InvalidValue):
        set_resources("4vcpu", memory_mib=16_385)


def test_all_cpu_offerings_fit_on_the_node_they_were_derived_from(sim: Simulation) -> None:
    create_cpu_nodes(cpu_node=ODD_NODE)
    offering_resources.update_shortages_of(cpu_offering(), now=NOW)
    assert node().resource_shortage == ""


def test_a_cpu_node_that_shrank_takes_no_new_leases_and_says_why(sim: Simulation) -> None:
    create_cpu_nodes()
    Node.objects.update(memory_mib=65_536)
    offering_resources.update_shortages_of(cpu_offering(), now=NOW)
    assert "this node has 32 GiB memory for each lease of this size" in node().resource_shortage


def test_a_block_that_is_no_longer_reported_takes_no_share(sim: Simulation) -> None:
    create_cpu_nodes()
    Gpu.objects.filter(index=1).update(health=GpuHealth.UNHEALTHY, health_reason=NOT_REPORTED)
    Node.objects.update(cpu_milli=16_000, memory_mib=65_536, scratch_mib=102_400)
    offering_resources.update_shortages_of(cpu_offering(), now=NOW)
    assert node().resource_shortage == ""


@pytest.mark.parametrize("left", [{}, {"2vcpu": [0, 1], "4vcpu": [0]}])
def test_cpus_that_other_pods_use_change_no_promise(sim: Simulation, left: dict[str, list[int]]) -> None:
    create_cpu_nodes()
    Gpu.objects.update(published=left)
    assert offering_resources.largest_resources(cpu_offering("2vcpu")) == HostResources(2000, 8192, 12_800)
    offering_resources.update_shortages_of(cpu_offering(), now=NOW)
    assert node().resource_shortage == ""


def test_a_cpu_lease_starts_on_a_block_with_the_amounts_of_its_offering(sim: Simulation) -> None:
    create_cpu_nodes()
    lease = sim.create_lease(create_tenant(units=1), cpu_offering("4vcpu"))
    assert lease.recorded_resources == HostResources(4000, 16_384, 25_600)
    assert [each.gpu.gpu_model_id for each in held_allocations(lease)] == [CPU_MODEL_NAME]


def test_a_cpu_lease_takes_no_gpu_quota(sim: Simulation) -> None:
    create_cpu_nodes()
    kestrel = create_tenant(units=1)
    sim.create_lease(kestrel, cpu_offering("16vcpu"))
    sim.create_lease(kestrel, cpu_offering("16vcpu"))
    assert kestrel.quota_used() == 0


def test_a_full_cpu_node_keeps_the_next_lease_in_the_queue(sim: Simulation) -> None:
    create_cpu_nodes(cpu_node=ODD_NODE)
    kestrel = create_tenant()
    sim.create_lease(kestrel, cpu_offering("16vcpu"))
    for _ in range(3):
        sim.create_lease(kestrel, cpu_offering("2vcpu"))
    waiting = sim.request_lease(kestrel, cpu_offering("2vcpu"))
    sim.run(5)
    assert reload_lease(waiting).state == LeaseState.QUEUED


def test_unreported_amounts_of_a_lease_without_records_are_those_of_its_size(sim: Simulation) -> None:
    create_cpu_nodes()
    lease = sim.request_lease(create_tenant(), cpu_offering("2vcpu"))
    lease.cpu_milli = lease.host_memory_mib = lease.scratch_mib = 0
    assert lease.recorded_resources == UNKNOWN
    assert offering_resources.lease_resources(lease) == HostResources(2000, 8192, 12_800)
