"""A device taint on one slice of a static MIG layout, as NVIDIA's DRA driver publishes it."""

from typing import Any

import msgspec
import pytest

from broker.domain.lifecycle.states import EndReason, Isolation, LeaseCondition, LeaseState
from broker.models import Cluster, Gpu, GpuHealth, Lease, Node, Offering, OfferingState
from broker.provisioners.kubernetes.client.objects import ClusterNode, FullObjectMeta, ResourceSlice
from broker.provisioners.kubernetes.drivers.discovered_inventory import DiscoveredNode
from broker.provisioners.kubernetes.drivers.dra import DraDriver
from broker.services.clusters.registration import cluster_registration
from broker.services.inventory import gpu_catalogue
from broker.services.placement import available_capacity
from tests.broker.domain.fleet import MODELS
from tests.simulation import Simulation, TenantContext, create_tenant, reload_lease
from tests.vendors import load_cases

SLICES = load_cases("resourceslices")
(XID, GPU_LOST), *_ = [each["taints"] for each in SLICES["device-health-taints"]["object"]["spec"]["devices"][:1]]
WITH_PARENT, WITHOUT_PARENT = "static-mig-with-parent-listed", "static-mig-no-parent-a30"
SMALL, MIDDLE = "gpu-0-mig-19-6-1", "gpu-0-mig-14-4-2"


def read_node(case: str, *tainted: str, taint: dict[str, Any] = XID) -> DiscoveredNode:
    """Return a vendor's node with the taint on some of its devices."""
    body = msgspec.json.decode(msgspec.json.encode(SLICES[case]["object"]))
    for device in body["spec"]["devices"]:
        if device["name"] in tainted:
            device["taints"] = [taint]
    published = msgspec.convert(body, ResourceSlice)
    node = ClusterNode(metadata=FullObjectMeta(name=published.spec.node_name))
    (found,) = DraDriver(MODELS).inventory([node], [published])
    return found


def tainted_profiles(found: DiscoveredNode) -> list[tuple[str, str, bool]]:
    return [(cut.profile, cut.fault, cut.lost) for cut in found.gpus[0].cuts if cut.fault]


def test_a_tainted_slice_leaves_its_gpu_healthy() -> None:
    found = read_node(WITH_PARENT, SMALL)
    assert [(gpu.healthy, gpu.lost, gpu.fault) for gpu in found.gpus] == [(True, False, "")] * 2
    assert tainted_profiles(found) == [("1g.10gb", "xid=79", True)]


def test_a_taint_that_is_not_fatal_closes_its_slice_without_a_loss() -> None:
    kept = {"key": "example.com/maintenance", "effect": "NoSchedule"}
    assert tainted_profiles(read_node(WITH_PARENT, SMALL, taint=kept)) == [("1g.10gb", "maintenance", False)]


def test_a_taint_on_the_gpu_itself_closes_all_of_it() -> None:
    gpu = read_node(WITH_PARENT, "gpu-0").gpus[0]
    assert (gpu.healthy, gpu.fault, gpu.lost) == (False, "xid=79", False)


def test_a_gpu_whose_slices_are_all_tainted_is_faulty() -> None:
    gpu = read_node(WITH_PARENT, "gpu-0-mig-9-0-4", MIDDLE, SMALL).gpus[0]
    assert (gpu.healthy, gpu.fault) == (False, "xid=79")


def test_a_slice_that_stands_for_its_unpublished_gpu_is_one_of_its_slices() -> None:
    found = read_node(WITHOUT_PARENT, "gpu-0-mig-2g12gb-5-0")
    assert found.gpus[0].healthy
    assert tainted_profiles(found) == [("2g.12gb", "xid=79", True)]


def report(sim: Simulation, *tainted: str, taint: dict[str, Any] = XID) -> Node:
    found = read_node(WITH_PARENT, *tainted, taint=taint)
    cluster_registration.update_inventory(Cluster.objects.get(), [found], now=sim.now)
    return Node.objects.get()


def offer(profile: str) -> Offering:
    return Offering.objects.get(profile=profile, isolation=Isolation.HARDWARE, price_class="on_demand")


def free(*profiles: str) -> list[int]:
    wanted = [offer(each) for each in profiles]
    found = available_capacity.count_available(wanted)
    return [found[each.pk] for each in wanted]


@pytest.fixture
def kestrel(sim: Simulation, cluster: Cluster) -> TenantContext:
    """Sell a node with a GPU in three slices, whose pods are simulated."""
    Cluster.objects.update(provisioner="simulated", driver="dra")
    report(sim)
    gpu_catalogue.derive_offerings(now=sim.now)
    Offering.objects.update(state=OfferingState.PUBLISHED)
    return create_tenant("Kestrel")


@pytest.fixture
def leases(sim: Simulation, kestrel: TenantContext) -> tuple[Lease, Lease]:
    """Return active leases of the small and of the middle slice."""
    small, middle = (sim.create_lease(kestrel, offer(profile)) for profile in ("1g.10gb", "2g.20gb"))
    return reload_lease(small), reload_lease(middle)


def test_only_the_tainted_slice_is_out_of_sale(sim: Simulation, kestrel: TenantContext) -> None:
    assert free("1g.10gb", "2g.20gb", "3g.40gb") == [1, 1, 1]
    node = report(sim, SMALL)
    assert free("1g.10gb", "2g.20gb", "3g.40gb") == [0, 1, 1]
    assert set(Gpu.objects.values_list("health", flat=True)) == {GpuHealth.HEALTHY}
    assert node.inventory_problem == ("GPU 0: its slice 1g.10gb at 6 is not sold: its node reports a fault: xid=79")


def test_a_slice_without_its_taint_is_sold_again(sim: Simulation, kestrel: TenantContext) -> None:
    report(sim, SMALL)
    node = report(sim)
    assert (free("1g.10gb"), node.inventory_problem) == ([1], "")


@pytest.mark.parametrize("taint", [XID, GPU_LOST], ids=["xid", "gpu-lost"])
def test_the_lease_on_a_lost_slice_ends_and_its_neighbours_continue(
    sim: Simulation, leases: tuple[Lease, Lease], taint: dict[str, Any]
) -> None:
    small, middle = leases
    sim.run(60)
    lost = sim.now
    report(sim, SMALL, taint=taint)
    sim.run(2)
    assert "its node reports a fault" in reload_lease(small).conditions[LeaseCondition.UNREACHABLE]
    sim.run(10)
    report(sim, SMALL, taint=taint)
    sim.run_with_sweeps(45)
    ended = reload_lease(small)
    assert (ended.end_reason, ended.ended_at) == (EndReason.DEVICE_LOST, lost.replace(microsecond=0))
    assert (reload_lease(middle).state, reload_lease(middle).conditions) == (LeaseState.ACTIVE, {})


def test_a_taint_that_only_refuses_new_claims_ends_no_lease(sim: Simulation, leases: tuple[Lease, Lease]) -> None:
    report(sim, SMALL, taint={"key": "example.com/maintenance", "effect": "NoSchedule"})
    sim.run_with_sweeps(120)
    assert {reload_lease(each).state for each in leases} == {LeaseState.ACTIVE}
