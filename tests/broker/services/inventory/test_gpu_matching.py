"""Matching of reported GPUs by their UUID."""

from typing import Any

from broker.models import Allocation, Cluster, Gpu
from broker.provisioners.kubernetes.drivers.discovered_inventory import DiscoveredGpu, DiscoveredNode
from broker.services.clusters.registration import cluster_registration
from tenants.services.rls import tenant_scope
from tests.broker.services.clusters.test_cluster_registration import gpu
from tests.simulation import NOW, Simulation, create_gpus, create_tenant, held_allocations, offering


def report_gpus(cluster: Cluster, **nodes: str) -> list[str]:
    """Let nodes report GPUs, each named by a letter."""
    found = [
        DiscoveredNode(name, tuple(_lettered_gpu(*each) for each in enumerate(reported)))
        for name, reported in nodes.items()
    ]
    return cluster_registration.update_inventory(cluster, found, now=NOW)


def _lettered_gpu(index: int, letter: str) -> DiscoveredGpu:
    return gpu(index, uuid=f"GPU-{letter}" if letter != "-" else f"n1/{index}")


def fleet(**where: Any) -> dict[tuple[str, int], str]:
    """Return the GPU at each node and index, of those that can be sold."""
    rows = Gpu.objects.sellable().filter(**where).values_list("node__name", "index", "uuid")
    return {(node, index): uuid.removeprefix("GPU-") for node, index, uuid in rows}


def test_a_gpu_keeps_its_index_when_another_disappears_and_returns(cluster: Cluster) -> None:
    report_gpus(cluster, n1="abc")
    rows = dict(Gpu.objects.values_list("uuid", "id"))
    report_gpus(cluster, n1="ac")
    assert fleet() == {("n1", 0): "a", ("n1", 2): "c"}
    report_gpus(cluster, n1="cab")
    assert fleet() == {("n1", 0): "a", ("n1", 1): "b", ("n1", 2): "c"}
    assert dict(Gpu.objects.values_list("uuid", "id")) == rows


def test_a_new_gpu_takes_the_index_of_the_replaced_one_or_an_unused_one(cluster: Cluster) -> None:
    report_gpus(cluster, n1="abc")
    report_gpus(cluster, n1="axc")
    assert fleet() == {("n1", 0): "a", ("n1", 1): "x", ("n1", 2): "c"}
    report_gpus(cluster, n1="cyz")
    assert fleet() == {("n1", 2): "c", ("n1", 1): "y", ("n1", 3): "z"}


def test_gpus_without_a_uuid_are_matched_by_index(cluster: Cluster) -> None:
    assert report_gpus(cluster, n1="-a-") == []
    assert report_gpus(cluster, n1="-a-") == []
    assert [index for _, index in sorted(fleet())] == [0, 1, 2]


def test_a_gpu_moved_to_another_node_is_sold_only_there(cluster: Cluster) -> None:
    report_gpus(cluster, n1="ab", n2="c")
    assert report_gpus(cluster, n1="b", n2="ca") == []
    assert fleet() == {("n1", 1): "b", ("n2", 0): "c", ("n2", 1): "a"}
    old = Gpu.objects.get(node__name="n1", index=0)
    assert (old.uuid, old.health_reason) == (f"{old.pk} was GPU-a", cluster_registration.NOT_REPORTED)
    assert report_gpus(cluster, n1="ab", n2="c") == []
    assert fleet() == {("n1", 0): "a", ("n1", 1): "b", ("n2", 0): "c"}


def test_a_gpu_reported_twice_is_accepted_once_with_a_problem(cluster: Cluster) -> None:
    report_gpus(cluster, n2="a")
    (why,) = report_gpus(cluster, n1="a", n2="a")
    assert why == "n1: GPU-a is not accepted: n2 reports it too"
    (why,) = report_gpus(cluster, n2="a", n3="bb")
    assert why == "n3: GPU-b is not accepted: it is reported twice"
    assert fleet() == {("n2", 0): "a", ("n3", 0): "b"}


def test_a_gpu_of_another_cluster_is_accepted_after_it_disappears_there(cluster: Cluster) -> None:
    other = Cluster.objects.create(name="west", region="eu", provisioner="kubernetes", created_at=NOW)
    report_gpus(other, w1="ab")
    (why,) = report_gpus(cluster, n1="a")
    assert why == "n1: GPU-a is not accepted: w1 reports it too"
    report_gpus(other, w1="b")
    assert report_gpus(cluster, n1="a") == []
    assert fleet(node__cluster=cluster) == {("n1", 0): "a"}


def test_a_gpu_changes_its_cluster_only_without_leases(cluster: Cluster, sim: Simulation) -> None:
    create_gpus(1)
    lease = sim.create_lease(create_tenant(), offering())
    (place,) = held_allocations(lease)
    Gpu.objects.filter(pk=place.gpu_id).update(uuid="GPU-a")
    place.gpu.node.cluster.nodes.update(cluster=cluster)
    (why,) = report_gpus(cluster, new="a")
    assert why.endswith(f"leases still use it on {place.gpu.node.name}")
    with tenant_scope(lease.tenant_id):
        Allocation.objects.update(released_at=NOW)
    assert report_gpus(cluster, new="a") == []
    assert fleet() == {("new", 0): "a"}
