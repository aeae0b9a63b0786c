"""CPU, memory and scratch of offerings: derived, edited, promised and frozen."""

from dataclasses import asdict
from typing import Any

import pytest

from broker.domain.geometry.host_resources import DEFAULT_OF_A_GPU, UNKNOWN, HostResources
from broker.domain.lifecycle.states import LeaseState
from broker.models import Cluster, Gpu, GpuHealth, Lease, Node, Offering, OfferingState
from broker.services.inventory import gpu_catalogue, offering_admin, offering_resources
from broker.services.inventory.gpu_matching import NOT_REPORTED
from broker.services.inventory.hardware import SimulatedRack, add_simulated_racks
from broker.services.leases.provision_specs import load_provision_spec
from broker.services.volumes.volume_metering import storage_offering
from tenants.models import AuditEvent
from tenants.services.errors import InvalidValue, StaleVersion
from tenants.services.rls import staff_scope, tenant_scope
from tests.simulation import (
    MODEL,
    NOW,
    OPERATOR,
    REGION,
    Simulation,
    create_fleet,
    create_gpus,
    create_tenant,
    offering,
    reload_lease,
)

EIGHT_GPUS = HostResources(90_905, 1_091_293, 0)  # of a node with 96 CPUs
ONE_GPU = HostResources(3420, 13_350, 15_349)  # of a node with 4 CPUs and 16 GiB
SMALL = HostResources(cpu_milli=3400, memory_mib=13_312, scratch_mib=14_336)


def node_with(amounts: HostResources, gpus: int, name: str = "north-1") -> Node:
    """Set up one node of a cluster that reports these amounts."""
    gpu_catalogue.load_gpu_models()
    add_simulated_racks([SimulatedRack(name, REGION, MODEL, nodes=1, gpus_per_node=gpus)], now=NOW)
    Node.objects.filter(cluster__name=name).update(**asdict(amounts))
    return Node.objects.get(cluster__name=name)


def derive() -> None:
    gpu_catalogue.derive_offerings(now=NOW)
    Offering.objects.update(state=OfferingState.PUBLISHED)


def set_resources(target: Offering, **changes: int) -> Offering:
    wanted = HostResources(**{**asdict(target.host_resources), **changes})
    return offering_admin.set_offering_resources(target, wanted, actor=OPERATOR, now=NOW)


@pytest.mark.parametrize(("amounts", "gpus"), [(EIGHT_GPUS, 8), (ONE_GPU, 1)])
def test_the_promises_to_all_gpus_of_a_node_fit_on_it(sim: Simulation, amounts: HostResources, gpus: int) -> None:
    node_with(amounts, gpus)
    derive()
    for profile, slices in (("whole-gpu", 1), ("3g.40gb", 2), ("1g.10gb", 7)):
        together = offering(profile).host_resources.times(slices * gpus)
        assert together.cpu_milli <= amounts.cpu_milli
        assert together.memory_mib <= amounts.memory_mib
        assert not amounts.scratch_mib or together.scratch_mib <= amounts.scratch_mib


def test_derived_amounts_are_the_share_of_the_smallest_node(sim: Simulation) -> None:
    node_with(EIGHT_GPUS, 8)
    node_with(ONE_GPU, 1, "north-2")
    derive()
    assert offering("whole-gpu").host_resources == SMALL
    assert offering("1g.10gb").host_resources == HostResources(400, 1664, 1024)


def test_a_node_that_reports_nothing_counts_with_the_usual_amounts(sim: Simulation) -> None:
    node_with(UNKNOWN, 8)
    derive()
    assert offering("whole-gpu").host_resources == DEFAULT_OF_A_GPU
    assert offering("3g.40gb").host_resources == HostResources(6000, 49_152, 102_400)


def test_a_node_whose_gpus_are_no_longer_reported_does_not_count(sim: Simulation) -> None:
    node_with(DEFAULT_OF_A_GPU, 1)
    node_with(ONE_GPU, 1, "north-2")
    gone = Gpu.objects.filter(node__cluster__name="north-2")
    gone.update(health=GpuHealth.UNHEALTHY, health_reason=NOT_REPORTED)
    derive()
    assert offering("whole-gpu").host_resources == DEFAULT_OF_A_GPU


def test_a_storage_offering_brings_nothing_and_cannot_be_edited(sim: Simulation) -> None:
    storage = storage_offering(REGION, now=NOW)
    assert storage.host_resources == UNKNOWN
    with pytest.raises(InvalidValue):
        set_resources(storage, cpu_milli=1000)


def test_edited_amounts_are_stored_and_audited_once(sim: Simulation) -> None:
    create_gpus(1)
    for _ in range(2):
        set_resources(offering("whole-gpu"), cpu_milli=8000, memory_mib=65_536)
    assert offering("whole-gpu").host_resources == HostResources(8000, 65_536, DEFAULT_OF_A_GPU.scratch_mib)
    with staff_scope():
        event = AuditEvent.objects.get(action="offering.set_resources")
    assert (event.detail["before"]["cpu_milli"], event.detail["after"]["cpu_milli"]) == (12_000, 8000)


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"cpu_milli": 50}, "cpu_milli", "A slice needs at least 0.1 CPUs."),
        ({"memory_mib": 255}, "host_memory_mib", "at least 256 MiB memory"),
        ({"scratch_mib": 1023}, "scratch_mib", "at least 1 GiB scratch"),
        ({"cpu_milli": 12_001}, "cpu_milli", "has 12 CPUs for each such slice"),
        ({"memory_mib": 98_305}, "host_memory_mib", "has 96 GiB memory"),
        ({"scratch_mib": 204_801}, "scratch_mib", "has 200 GiB scratch"),
    ],
)
def test_amounts_that_a_node_cannot_give_are_refused(
    sim: Simulation, changes: dict[str, int], field: str, words: str
) -> None:
    create_gpus(1)
    with pytest.raises(InvalidValue) as refused:
        set_resources(offering("whole-gpu"), **changes)
    assert (refused.value.field, words in refused.value.detail) == (field, True)
    assert refused.value.fix.text


def test_any_amount_is_accepted_while_no_node_reports_one(sim: Simulation) -> None:
    node_with(UNKNOWN, 8)
    derive()
    assert set_resources(offering("whole-gpu"), cpu_milli=64_000).cpu_milli == 64_000
    with pytest.raises(InvalidValue):
        set_resources(offering("whole-gpu"), cpu_milli=2**31)


def test_an_offering_that_changed_in_the_meantime_is_not_edited(sim: Simulation) -> None:
    create_gpus(1)
    mine, theirs = offering("whole-gpu"), offering("whole-gpu")
    set_resources(theirs, cpu_milli=8000)
    with pytest.raises(StaleVersion):
        set_resources(mine, cpu_milli=9000)


def shortage(node: Node) -> str:
    cluster = Cluster.objects.get(pk=node.cluster_id)
    offering_resources.update_shortages(cluster, Node.objects.filter(pk=node.pk), now=NOW)
    return Node.objects.get(pk=node.pk).resource_shortage


def test_a_node_with_less_than_promised_is_out_of_sale_until_the_promise_is_lower(sim: Simulation) -> None:
    node_with(DEFAULT_OF_A_GPU, 1)
    derive()
    poor = node_with(HostResources(3420, 98_304, 0), 1, "north-2")
    assert shortage(poor) == (
        "Offering H100 SXM 80GB whole GPU promises 12 CPUs, this node has 3.42 CPUs for each GPU; lower the"
        " offering's CPUs."
    )
    assert set(Gpu.objects.sellable().values_list("node__cluster__name", flat=True)) == {"north-1"}
    Offering.objects.exclude(profile="whole-gpu").update(state=OfferingState.RETIRED)
    for price_class in ("on_demand", "spot"):
        set_resources(offering("whole-gpu", price_class=price_class), cpu_milli=3400)
    assert Node.objects.get(pk=poor.pk).resource_shortage == ""
    assert Gpu.objects.sellable().count() == 2
    assert ("broker.run_queue", f"{MODEL}|{REGION}") in {(task, subject) for _, _, task, subject, _ in sim.messages}


def test_a_node_is_out_of_sale_as_soon_as_a_larger_offering_is_published(sim: Simulation) -> None:
    node = node_with(ONE_GPU, 1)
    gpu_catalogue.derive_offerings(now=NOW)
    whole = offering("whole-gpu")
    Offering.objects.filter(pk=whole.pk).update(host_memory_mib=98_304)
    whole.refresh_from_db()
    offering_admin.set_offering_state(whole, OfferingState.PUBLISHED, actor=OPERATOR, now=NOW)
    assert "promises 96 GiB memory, this node has 13 GiB memory" in Node.objects.get(pk=node.pk).resource_shortage
    offering_admin.set_offering_state(whole, OfferingState.RETIRED, actor=OPERATOR, now=NOW)
    assert Node.objects.get(pk=node.pk).resource_shortage == ""


def test_an_offering_that_a_node_does_not_hold_is_no_promise_of_it(sim: Simulation) -> None:
    node = node_with(ONE_GPU, 1)
    derive()
    Offering.objects.filter(profile="whole-gpu").update(cpu_milli=12_000)
    assert "whole GPU promises 12 CPUs" in shortage(node)
    slices = [{"profile": "1g.10gb", "start": start, "size": 1} for start in range(7)]
    Gpu.objects.update(layout_policy="fixed", fixed_layout=slices)
    assert shortage(node) == ""
    Gpu.objects.update(layout_policy="dynamic", fixed_layout=[], published={"1g.10gb": [0, 1, 2]})
    assert shortage(node) == ""


def test_nothing_is_placed_on_a_node_with_a_shortage_until_it_ends(sim: Simulation) -> None:
    create_gpus(1)
    Node.objects.update(resource_shortage="Offering H100 promises 12 CPUs.")
    lease = sim.create_lease(create_tenant(), offering("whole-gpu"), LeaseState.QUEUED)
    sim.run(60)
    assert reload_lease(lease).state == LeaseState.QUEUED
    offering_resources.update_shortages_of(offering("whole-gpu"), now=sim.now)
    sim.run(10)
    assert reload_lease(lease).state == LeaseState.ACTIVE


def test_a_node_that_reports_nothing_stays_in_sale(sim: Simulation) -> None:
    node = node_with(UNKNOWN, 1)
    derive()
    assert shortage(node) == ""


def test_a_lease_keeps_what_was_promised_when_it_was_requested(sim: Simulation) -> None:
    create_gpus(2)
    lease = sim.create_lease(create_tenant(), offering("whole-gpu"))
    set_resources(offering("whole-gpu"), cpu_milli=8000)
    later = sim.create_lease(create_tenant("Later"), offering("whole-gpu"))
    assert [provisioned(each).cpu_milli for each in (lease, later)] == [12_000, 8000]


def test_a_lease_of_before_keeps_the_share_it_was_rendered_with(sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering("1g.10gb"))
    set_resources(offering("1g.10gb"), cpu_milli=1000)
    with tenant_scope(lease.tenant_id):
        Lease.objects.filter(pk=lease.pk).update(cpu_milli=0, host_memory_mib=0, scratch_mib=0)
    assert provisioned(lease) == HostResources(1500, 12_288, 25_600)


def provisioned(lease: Lease) -> HostResources:
    with tenant_scope(lease.tenant_id):
        return load_provision_spec(Lease.objects.select_related("offering", "volume").get(pk=lease.pk)).resources


def test_simulated_racks_have_the_usual_amounts_for_each_gpu(sim: Simulation) -> None:
    create_fleet()
    node = Node.objects.get()
    gpus: Any = node.gpus.count()
    assert node.host_resources == DEFAULT_OF_A_GPU.times(gpus)


def test_an_offering_of_a_profile_that_its_model_lost_is_checked_like_a_whole_gpu(sim: Simulation) -> None:
    node = node_with(ONE_GPU, 1)
    derive()
    Offering.objects.filter(profile="7g.80gb").update(profile="7g.79gb", cpu_milli=3421)
    assert "7g.80gb promises 3.42 CPUs" in shortage(node)
