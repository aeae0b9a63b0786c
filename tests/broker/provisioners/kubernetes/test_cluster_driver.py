"""Clusters whose nodes have different drivers, and nodes that sell their CPUs."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from broker.domain.geometry.host_resources import HostResources
from broker.domain.lifecycle.states import Isolation, PriceClass
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client.objects import ClusterNode, ResourceSlice
from broker.provisioners.kubernetes.drivers.base import claimed_ranks
from broker.provisioners.kubernetes.drivers.cpu import offer_remaining_cpus
from broker.provisioners.kubernetes.drivers.driver_registry import create_driver
from broker.provisioners.kubernetes.drivers.hami import REGISTER_ANNOTATION
from broker.provisioners.kubernetes.render.lease import lease_objects
from broker.provisioners.kubernetes.render.spec import OfferingSpec, SliceSpec
from tests.broker.domain.fleet import MODELS
from tests.broker.provisioners.kubernetes.lease_specs import GANG, LEASE, of_kind, pods
from tests.controlplane.devices import published

AUTOMATIC = create_driver("automatic", {}, MODELS)
T4_LABELS = {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.count": "1", "nvidia.com/gpu.memory": "15360"}
SELLS_CPU = {labels.SELL_CPU: "true"}
CPU_LEASE = replace(
    LEASE,
    offering=OfferingSpec("CPU", "4vcpu", Isolation.HARDWARE, PriceClass.ON_DEMAND, HostResources(4000, 16384, 20480)),
    slices=(SliceSpec("cpu-1", "cpu-1/0", "4vcpu", 2, 2, 8, driver="cpu"),),
)


def node(name: str, marks: dict[str, str] | None = None, *, hami: str = "", **allocatable: str) -> ClusterNode:
    amounts = {key.replace("_", "/"): amount for key, amount in allocatable.items()}
    annotations = {REGISTER_ANNOTATION: hami} if hami else {}
    meta = {"name": name, "labels": marks or {}, "annotations": annotations}
    body = {"metadata": meta, "status": {"allocatable": amounts}}
    return msgspec.convert(body, ClusterNode)


def dra_slices(name: str) -> list[ResourceSlice]:
    return [msgspec.convert(each, ResourceSlice) for each in published(name)]


def test_each_node_of_an_automatic_cluster_is_read_by_its_own_driver() -> None:
    nodes = [
        node("t4-1", T4_LABELS, **{"nvidia.com_gpu": "1"}),
        node("dra-1"),
        node("hami-1", hami="GPU-5,10,81559,100,NVIDIA-NVIDIA H100 80GB HBM3,0,true:"),
        node("cpu-1", SELLS_CPU, cpu="16"),
        node("plain-1", cpu="16"),
    ]
    found = {each.name: (each.driver, len(each.gpus)) for each in AUTOMATIC.inventory(nodes, dra_slices("dra-1"))}
    assert found == {
        "t4-1": ("device_plugin", 1),
        "dra-1": ("dra", 1),
        "hami-1": ("hami", 1),
        "cpu-1": ("cpu", 1),
    }


@pytest.mark.parametrize("driver", ["automatic", "dra"])
@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/gpu.shared"])
def test_a_node_that_offers_its_gpus_by_two_interfaces_sells_nothing_new(driver: str, resource: str) -> None:
    made = create_driver(driver, {}, MODELS)
    both, plain = node("dra-1", **{resource: "2"}), node("dra-2", **{resource: "0"})
    found = made.inventory([both, plain], dra_slices("dra-1") + dra_slices("dra-2"))
    assert [(each.name, each.driver, len(each.gpus)) for each in found] == [("dra-1", "dra", 1), ("dra-2", "dra", 1)]
    assert f"as {resource} of a device plugin" in found[0].refusal
    assert found[1].refusal == ""


def test_a_pool_without_devices_leaves_a_node_to_its_device_plugin() -> None:
    slices = dra_slices("t4-1")
    for each in slices:
        each.spec.devices = []
    [found] = AUTOMATIC.inventory([node("t4-1", T4_LABELS, **{"nvidia.com_gpu": "1"})], slices)
    assert (found.driver, [gpu.model for gpu in found.gpus], found.refusal) == ("device_plugin", ["T4-16GB"], "")


@pytest.mark.parametrize("driver", ["device_plugin", "dra", "hami"])
def test_a_cluster_of_any_driver_sells_cpus_of_labelled_nodes(driver: str) -> None:
    [found] = create_driver(driver, {}, MODELS).inventory([node("cpu-1", SELLS_CPU, cpu="96", memory="384Gi")], [])
    assert (found.driver, {gpu.model for gpu in found.gpus}) == ("cpu", {"CPU"})
    assert [gpu.published.starts() if gpu.published else "all" for gpu in found.gpus] == [
        *["all"] * 5,
        {"2vcpu": [0, 1, 2, 3, 4], "4vcpu": [0, 2], "8vcpu": [0]},
    ]


def test_a_labelled_node_with_gpus_sells_these_and_not_its_cpus() -> None:
    [found] = AUTOMATIC.inventory([node("t4-1", T4_LABELS | SELLS_CPU, **{"nvidia.com_gpu": "1", "cpu": "4"})], [])
    assert (found.driver, [gpu.model for gpu in found.gpus]) == ("device_plugin", ["T4-16GB"])


def test_a_labelled_node_with_less_than_two_cpus_says_why_it_sells_none() -> None:
    [found] = AUTOMATIC.inventory([node("cpu-1", SELLS_CPU, cpu="2")], [])
    assert (found.gpus, found.problems) == (
        (),
        (f"it is labelled {labels.SELL_CPU} and has less than 2 CPUs for leases",),
    )


def test_cpus_that_others_use_reduce_the_last_blocks_of_a_node() -> None:
    [found] = AUTOMATIC.inventory([node("cpu-1", SELLS_CPU, cpu="36")], [])
    assert len(found.gpus) == 3
    left = offer_remaining_cpus(replace(found, resources_left=HostResources(cpu_milli=21_000)))
    offered = [gpu.published.starts() if gpu.published else "all" for gpu in left.gpus]
    assert offered == ["all", {"2vcpu": [0, 1], "4vcpu": [0]}, {}]


def test_a_lease_of_cpus_requests_no_device() -> None:
    [pod] = pods(lease_objects(CPU_LEASE, AUTOMATIC, anchor_uid="uid"))
    wanted = {"cpu": "4000m", "memory": "16384Mi", "ephemeral-storage": "20480Mi"}
    assert pod["spec"]["containers"][0]["resources"] == {"limits": wanted, "requests": wanted}
    assert "resourceClaims" not in pod["spec"]


def test_only_ranks_on_dra_nodes_hold_resource_claims() -> None:
    drivers = {"gpu-node-1": "device_plugin", "gpu-node-2": "dra"}
    gang = replace(GANG, slices=tuple(replace(each, driver=drivers[each.node]) for each in GANG.slices))
    made: list[dict[str, Any]] = lease_objects(gang, AUTOMATIC, anchor_uid="uid")
    assert claimed_ranks(AUTOMATIC, gang) == [1]
    assert [each["metadata"]["name"].rpartition("-")[2] for each in of_kind(made, "ResourceClaim")] == ["c1"]
    limits = [pod["spec"]["containers"][0]["resources"]["limits"].get("nvidia.com/gpu") for pod in pods(made)]
    assert limits == ["2", None]


def test_a_lease_of_the_former_driver_of_a_cluster_keeps_its_requests() -> None:
    before = replace(LEASE, slices=(replace(LEASE.slices[0], driver="device_plugin"),))
    request = create_driver("dra", {}, MODELS).slice_request(before, "gpu-node-1")
    assert (dict(request.limits), request.claim) == ({"nvidia.com/mig-1g.10gb": 1}, "")
