"""Pods outside the broker on GPU nodes: what they hold is not sold."""

from fractions import Fraction
from typing import Any

import pytest

from broker.domain.lifecycle.states import Isolation, LeaseState
from broker.models import Cluster, Gpu, Lease, Node, Offering, OfferingState
from broker.provisioners.kubernetes.client.objects import ClusterNode, FullObjectMeta, NodeStatus
from broker.provisioners.kubernetes.drivers.discovered_inventory import (
    DiscoveredGpu,
    DiscoveredNode,
    DiscoveredSlice,
    ForeignNodeUsage,
)
from broker.provisioners.kubernetes.drivers.node_resources import node_resources, resources_left
from broker.services.clusters.registration import cluster_registration
from broker.services.inventory import gpu_catalogue
from broker.services.placement import available_capacity
from broker.services.queue import queue_scheduling
from broker.services.reports import fleet_gpus
from broker.services.reports.gpu_usage import UnitUse
from tenants.services.rls import staff_scope
from tests.simulation import (
    MODEL,
    NOW,
    Simulation,
    TenantContext,
    create_tenant,
    held_allocations,
    offering,
    reload_lease,
)

WHOLE = (DiscoveredSlice(0, 8, "whole-gpu"),)
ONES = tuple(DiscoveredSlice(start, 1, "1g.10gb") for start in range(7))


def whole_gpus(count: int) -> tuple[DiscoveredGpu, ...]:
    return tuple(DiscoveredGpu(index, f"n1/{index}", MODEL, Isolation.DEVICE, WHOLE) for index in range(count))


def update_n1(cluster: Cluster, gpus: tuple[DiscoveredGpu, ...], **held: int) -> None:
    amounts = {f"nvidia.com/{name.replace('__', '-')}": Fraction(count) for name, count in held.items()}
    node = DiscoveredNode("n1", gpus, foreign=ForeignNodeUsage(amounts))
    assert cluster_registration.update_inventory(cluster, [node], now=NOW) == []


@pytest.fixture
def kestrel(cluster: Cluster) -> TenantContext:
    update_n1(cluster, whole_gpus(8))
    gpu_catalogue.derive_offerings(now=NOW)
    Offering.objects.update(state=OfferingState.PUBLISHED)
    return create_tenant("Kestrel")


def free(profile: str = "whole-gpu") -> int:
    wanted = offering(profile)
    return available_capacity.count_available([wanted])[wanted.pk]


def place(sim: Simulation, owner: TenantContext, count: int, profile: str = "whole-gpu") -> list[Lease]:
    leases = [sim.request_lease(owner, offering(profile)) for _ in range(count)]
    queue_scheduling.run_queue((MODEL, "eu"), now=sim.now)
    return leases


def test_gpus_held_by_pods_of_others_are_not_for_sale(cluster: Cluster, kestrel: TenantContext) -> None:
    assert free() == 8
    update_n1(cluster, whole_gpus(8), gpu=3)
    assert free() == 5
    update_n1(cluster, whole_gpus(8))
    assert free() == 8


def test_leases_and_pods_of_others_never_exceed_a_node(
    cluster: Cluster, kestrel: TenantContext, sim: Simulation
) -> None:
    placed = place(sim, kestrel, 4)
    update_n1(cluster, whole_gpus(8), gpu=3)
    assert free() == 1
    more = place(sim, kestrel, 2)
    assert [bool(held_allocations(lease)) for lease in (*placed, *more)] == [True] * 5 + [False]
    waiting = reload_lease(more[1])
    assert waiting.state == LeaseState.QUEUED


def test_slots_of_leases_stay_theirs_when_a_pod_of_others_starts(
    cluster: Cluster, kestrel: TenantContext, sim: Simulation
) -> None:
    (lease,) = place(sim, kestrel, 1)
    (held,) = held_allocations(lease)
    update_n1(cluster, whole_gpus(8), gpu=7)
    assert free() == 0
    assert not any(cut.get("in_use") for cut in Gpu.objects.get(pk=held.gpu_id).fixed_layout)


def test_mig_slices_held_by_pods_of_others_are_not_for_sale(
    cluster: Cluster, kestrel: TenantContext, sim: Simulation
) -> None:
    cut = tuple(DiscoveredGpu(i, f"n1/{i}", MODEL, Isolation.HARDWARE, ONES) for i in range(2))
    update_n1(cluster, cut)
    gpu_catalogue.derive_offerings(now=NOW)
    Offering.objects.update(state=OfferingState.PUBLISHED)
    assert free("1g.10gb") == 14
    update_n1(cluster, cut, **{"mig__1g.10gb": 9})
    assert free("1g.10gb") == 5
    leases = place(sim, kestrel, 6, "1g.10gb")
    assert [bool(held_allocations(lease)) for lease in leases] == [True] * 5 + [False]


@pytest.mark.parametrize("name", ["GPU-a", "gpu-0-mig-1g10gb-19-0"])
def test_a_gpu_with_a_device_held_by_others_is_not_for_sale(cluster: Cluster, name: str) -> None:
    def update(usage: ForeignNodeUsage) -> Any:
        devices = ("gpu-0", "gpu-0-mig-1g10gb-19-0")
        gpu = DiscoveredGpu(0, "GPU-a", MODEL, Isolation.HARDWARE, (), devices=devices)
        node = DiscoveredNode("n1", (gpu,), foreign=usage)
        cluster_registration.update_inventory(cluster, [node], now=NOW)
        return Gpu.objects.get()

    assert update(ForeignNodeUsage(devices={name: "team-a/train-0"})).foreign_holder == "team-a/train-0"
    assert not Gpu.objects.sellable().exists()
    assert update(ForeignNodeUsage(devices={"gpu-1": "team-a/train-0"})).foreign_holder == ""
    assert Gpu.objects.sellable().exists()


def dra_gpus(isolation: Isolation) -> tuple[DiscoveredGpu, ...]:
    cuts = WHOLE if isolation is Isolation.DEVICE else ()
    return tuple(
        DiscoveredGpu(index, f"GPU-{index}", MODEL, isolation, cuts, devices=(f"gpu-{index}",)) for index in range(4)
    )


@pytest.mark.parametrize("isolation", [Isolation.DEVICE, Isolation.HARDWARE])
def test_pods_of_others_with_unnamed_gpus_of_a_dra_node_close_all_of_them(
    cluster: Cluster, isolation: Isolation
) -> None:
    """Pods that a device plugin served before DRA hold unknown GPUs."""

    def sold(held: int) -> int:
        usage = ForeignNodeUsage({"nvidia.com/gpu": Fraction(held)})
        node = DiscoveredNode("n1", dra_gpus(isolation), foreign=usage, driver="dra")
        cluster_registration.update_inventory(cluster, [node], now=NOW)
        return Gpu.objects.sellable().count()

    assert sold(1) == 0
    assert "hold 1 nvidia.com/gpu of it by a device plugin" in Node.objects.get().inventory_problem
    assert sold(0) == 4


def test_a_claim_of_others_closes_the_gpu_it_names_and_no_other(cluster: Cluster) -> None:
    usage = ForeignNodeUsage(devices={"gpu-1": "team-a/train"})
    node = DiscoveredNode("n1", dra_gpus(Isolation.DEVICE), foreign=usage, driver="dra")
    cluster_registration.update_inventory(cluster, [node], now=NOW)
    assert list(Gpu.objects.sellable().order_by("index").values_list("index", flat=True)) == [0, 2, 3]
    assert not any(cut.get("in_use") for gpu in Gpu.objects.all() for cut in gpu.fixed_layout)


def test_a_gpu_held_by_others_is_shown_as_out_of_sale(cluster: Cluster, kestrel: TenantContext) -> None:
    update_n1(cluster, whole_gpus(8), gpu=3)
    with staff_scope():
        uses = [gpu.idle_use for gpu in fleet_gpus.load_gpus()]
    assert uses == [None] * 5 + [UnitUse.MAINTENANCE] * 3


MACHINE = ClusterNode(
    metadata=FullObjectMeta(name="n1"),
    status=NodeStatus(allocatable={"cpu": "96", "memory": "1Ti", "ephemeral-storage": "4Ti"}),
)


def update_machine(cluster: Cluster, *, cpu: int = 0, memory_mib: int = 0, gpu: int = 0, daemon_sets: int = 0) -> Node:
    """Update a node of which others' pods and daemon sets hold a part."""
    ordinary, resident = {"cpu": Fraction(cpu), "memory": Fraction(memory_mib * 2**20)}, {"cpu": Fraction(daemon_sets)}
    usage = ForeignNodeUsage({"nvidia.com/gpu": Fraction(gpu)}, daemon_sets=resident, ordinary=ordinary)
    amounts, left = node_resources(MACHINE, usage), resources_left(MACHINE, usage)
    found = DiscoveredNode("n1", whole_gpus(8), foreign=usage, resources=amounts, resources_left=left)
    cluster_registration.update_inventory(cluster, [found], now=NOW)
    return Node.objects.get()


@pytest.fixture
def machine(cluster: Cluster) -> Node:
    """Sell a node with 8 GPUs and 96 CPUs; each GPU brings 11.4 CPUs."""
    update_machine(cluster)
    gpu_catalogue.derive_offerings(now=NOW)
    Offering.objects.update(state=OfferingState.PUBLISHED)
    return update_machine(cluster)


def test_gpus_without_cpus_left_by_pods_of_others_are_not_sold(cluster: Cluster, machine: Node) -> None:
    """Of 96 CPUs 36 are left, enough for three GPUs."""
    assert free() == 8
    node = update_machine(cluster, cpu=60)
    assert free() == 3
    assert (node.cpu_milli, node.resource_shortage) == (machine.cpu_milli, "")
    assert node.inventory_problem.startswith("Pods outside the broker leave 36 CPUs, so 5 of its 8 GPUs are not sold")
    update_machine(cluster)
    assert (free(), Node.objects.get().inventory_problem) == (8, "")


def test_gpus_without_memory_left_by_pods_of_others_are_not_sold(cluster: Cluster, machine: Node) -> None:
    whole = Offering.objects.get(profile="whole-gpu", price_class="on_demand")
    node = update_machine(cluster, memory_mib=2**20 - 2 * whole.host_memory_mib)
    assert free() == 2
    assert "GiB memory, so 6 of its 8 GPUs are not sold" in node.inventory_problem


def test_leased_gpus_count_before_free_ones_when_cpus_are_short(
    cluster: Cluster, machine: Node, sim: Simulation
) -> None:
    owner = create_tenant("Kestrel")
    held = {held_allocations(lease)[0].gpu_id for lease in place(sim, owner, 2)}
    update_machine(cluster, cpu=60)
    assert free() == 1
    assert not set(Gpu.objects.exclude(foreign_holder="").values_list("pk", flat=True)) & held


def test_a_pod_of_others_with_a_gpu_and_its_share_of_cpus_closes_one_gpu(cluster: Cluster, machine: Node) -> None:
    update_machine(cluster, cpu=12, gpu=1)
    assert free() == 7


def test_smaller_promises_leave_more_gpus_for_sale(cluster: Cluster, machine: Node) -> None:
    Offering.objects.update(cpu_milli=4500)
    update_machine(cluster, cpu=60)
    assert free() == 8


def test_a_growing_daemon_set_closes_a_node_that_promises_more(cluster: Cluster, machine: Node) -> None:
    node = update_machine(cluster, daemon_sets=9)
    assert node.resource_shortage.startswith("Offering H100 SXM 80GB whole GPU promises 11.4 CPUs, this node has 10.87")
    assert offering("whole-gpu").cpu_milli == 11_400
    assert free() == 0
