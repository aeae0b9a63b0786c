"""Inventory of nodes as real clusters label them; forms and sources are in tests/vendors."""

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from broker.domain.geometry.gpu_identification import GpuDescription, UnidentifiedGpu, identify_gpu, nominal_memory_gb
from broker.domain.geometry.product_names import parse_product_name
from broker.domain.lifecycle.states import Isolation
from broker.provisioners.kubernetes.client.objects import ClusterNode, ResourceSlice, Taint
from broker.provisioners.kubernetes.client.quantities import parse_memory_mib
from broker.provisioners.kubernetes.drivers.device_plugin import DevicePluginDriver
from broker.provisioners.kubernetes.drivers.discovered_inventory import DiscoveredGpu, DiscoveredNode
from broker.provisioners.kubernetes.drivers.dra import DraDriver
from broker.provisioners.kubernetes.drivers.hami import REGISTER_ANNOTATION, HamiDriver
from tests.broker.domain.fleet import MODELS
from tests.controlplane.devices import H100_PROFILES, published, static, uuid
from tests.vendors import load_cases

NODES, SLICES = load_cases("node_labels"), load_cases("resourceslices")
NODE_INVENTORY = {
    "t4-gce-2gpu-oldlabels": "2 x T4-16GB device: 1xwhole-gpu",
    "t4-eks-mps-4": "1 x T4-16GB soft: 4xquarter as nvidia.com/gpu",
    "l4-openshift-aws": "4 x L4-24GB device: 1xwhole-gpu as nvidia.com/gpu",
    "l4-eks-karpenter-no-gfd": "1 x L4-24GB device: 1xwhole-gpu as nvidia.com/gpu",
    "a100-40-eks-p4d-spot-young": "8 x A100-40GB device: 1xwhole-gpu as nvidia.com/gpu",
    "eks-g5-two-taints": "1 x A10G-24GB device: 1xwhole-gpu as nvidia.com/gpu",
    "gke-l4-no-gfd": "1 x L4-24GB device: 1xwhole-gpu as nvidia.com/gpu",
    "aks-t4-spot-no-gfd": "1 x T4-16GB device: 1xwhole-gpu as nvidia.com/gpu",
    "l40s-vm": "1 x L40S-48GB device: 1xwhole-gpu as nvidia.com/gpu",
    "l40s-wrong-family": "1 x L40S-48GB device: 1xwhole-gpu as nvidia.com/gpu",
    "a10-vm-tainted": "1 x A10-24GB device: 1xwhole-gpu as nvidia.com/gpu",
    "a10g-timeslicing-2": "1 x A10G-24GB none: 2xhalf as nvidia.com/gpu",
    "timeslicing-renamed-resource": "1 x A10G-24GB none: 4xquarter",
    "rtx2000ada-timeslicing-3x2": "not sold: each GPU has 3 replicas, which is not a share that is sold; ",
    "rtx4090-mps-8": "8 x RTX-4090-24GB soft: 2xhalf as nvidia.com/gpu",
    "h20": "8 x H20-96GB device: 1xwhole-gpu as nvidia.com/gpu",
    "a40-nautilus-own-resource": "4 x A40-48GB device: 1xwhole-gpu as nvidia.com/a40",
    "a40-timeslicing-4": "1 x A40-48GB none: 4xquarter as nvidia.com/gpu",
    "a16-board": "4 x A16-16GB device: 1xwhole-gpu as nvidia.com/gpu",
    "a16-vgpu-guest": "not sold: its A16-4Q is a virtual GPU: the hypervisor shares the card ",
    "a100-vgpu-guest-vks": "not sold: its A100-10C is a virtual GPU: the hypervisor shares the car",
    "v100-sxm2-8": "8 x V100-SXM2-16GB device: 1xwhole-gpu as nvidia.com/gpu",
    "v100-dgx-suffix-n": "1 x V100-SXM2-16GB-N device: 1xwhole-gpu as nvidia.com/gpu",
    "rtx-a6000": "1 x RTX-A6000-48GB device: 1xwhole-gpu as nvidia.com/gpu",
    "a30-2": "2 x A30-24GB device: 1xwhole-gpu as nvidia.com/gpu",
    "a100-pcie-80-full": "1 x A100-PCIe-80GB device: 1xwhole-gpu as nvidia.com/gpu",
    "a100-pcie-40-single-mig-olddriver": "1 x A100-PCIe-40GB hardware: 7x1g.5gb as nvidia.com/gpu",
    "a100-sxm-40-mixed": "1 x A100-40GB hardware: 2x1g.5gb+1x2g.10gb",
    "a100-sxm-40-mixed-7g": "1 x A100-40GB hardware: 1x7g.40gb",
    "a100-sxm-80-single-mig": "8 x A100-80GB hardware: 7x1g.10gb as nvidia.com/gpu",
    "a100-sxm-80-mixed-balanced": "8 x A100-80GB hardware: 2x1g.10gb+1x2g.20gb+1x3g.40gb",
    "a100-mig-invalid-count": "not sold: its MIG layout is invalid for the MIG strategy single: all G",
    "a100-pcie-mig-invalid-zero": "not sold: its MIG layout is invalid for the MIG strategy single: all G",
    "gfd-memory-in-bytes": "1 x A100-40GB device: 1xwhole-gpu as nvidia.com/gpu",
    "mig-label-rounding": "8 x A100-40GB hardware: 2x3g.20gb",
    "mixed-products-one-node": "8 x V100-SXM2-32GB device: 1xwhole-gpu as nvidia.com/gpu",
    "gfd-missing-product-and-memory": "not sold: its labels name no GPU product; install gpu-feature-discover",
    "h100-sxm-mixed-balanced": "1 x H100-80GB hardware: 2x1g.10gb+1x2g.20gb+1x3g.40gb",
    "h100-sxm-full-8": "8 x H100-80GB device: 1xwhole-gpu as nvidia.com/gpu",
    "h100-noexecute-product-taint-cordoned": "4 x H100-80GB device: 1xwhole-gpu as nvidia.com/gpu",
    "h100-nvl": "1 x H100-NVL-94GB device: 1xwhole-gpu as nvidia.com/gpu",
    "h100-pcie": "2 x H100-PCIe-80GB device: 1xwhole-gpu as nvidia.com/gpu",
    "h200": "8 x H200-141GB device: 1xwhole-gpu as nvidia.com/gpu",
    "h200-coreweave-no-gfd-key": "8 x H200-141GB device: 1xwhole-gpu as nvidia.com/gpu",
    "gh200": "1 x GH200-96GB device: 1xwhole-gpu as nvidia.com/gpu",
    "b200-nscale": "8 x B200-180GB device: 1xwhole-gpu as nvidia.com/gpu",
    "gb200-arm-clique": "4 x GB200-186GB device: 1xwhole-gpu as nvidia.com/gpu",
    "rtx-pro-6000-server": "8 x RTX-PRO-6000-Server-96GB device: 1xwhole-gpu as nvidia.com/gpu",
    "rtx-pro-6000-maxq-mig-failed": "not sold: its RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition is not ",
    "hami-gpu-zero": "not sold: its A100-PCIE-40GB is not offered to pods: the device plugin",
}


def node_of(case: dict[str, Any]) -> ClusterNode:
    return ready_node(case["case"], case["labels"], case["allocatable"])


def ready_node(
    name: str,
    labels: dict[str, str],
    allocatable: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> ClusterNode:
    meta = {"name": name, "labels": labels, "annotations": annotations or {}}
    return msgspec.convert({"metadata": meta, "status": {"allocatable": allocatable or {}}}, ClusterNode)


def describe(gpu: DiscoveredGpu) -> str:
    cuts = Counter(cut.profile for cut in gpu.cuts)
    layout = "+".join(f"{count}x{profile}" for profile, count in sorted(cuts.items()))
    return f"{gpu.model} {gpu.isolation}: {layout}{f' as {gpu.resource_name}' if gpu.resource_name else ''}"


def describe_node(node: DiscoveredNode) -> str:
    kinds = Counter(map(describe, node.gpus))
    return " and ".join(f"{count} x {kind}" for kind, count in kinds.items()) or f"not sold: {node.problems[0]}"


def test_every_vendor_node_has_an_expected_inventory() -> None:
    assert NODES.keys() == NODE_INVENTORY.keys()


@pytest.mark.parametrize("case", NODE_INVENTORY)
def test_a_vendor_node_is_sold_as_expected(case: str) -> None:
    (found,) = DevicePluginDriver(MODELS).inventory([node_of(NODES[case])], [])
    assert describe_node(found).startswith(NODE_INVENTORY[case])


def plain_node(product: str, memory: str, count: int = 1, **labels: str) -> ClusterNode:
    found = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": str(count), **labels}
    return ready_node(
        "n1", found | ({"nvidia.com/gpu.memory": memory} if memory else {}), {"nvidia.com/gpu": str(count)}
    )


@pytest.mark.parametrize(
    ("product", "memory", "name", "label", "memory_gb"),
    [
        ("Tesla-T4", "15360", "T4-16GB", "T4 16GB", 16),
        ("NVIDIA-A2", "15356", "A2-16GB", "A2 16GB", 16),
        ("NVIDIA-L4", "23034", "L4-24GB", "L4 24GB", 24),
        ("NVIDIA-L40", "46068", "L40-48GB", "L40 48GB", 48),
        ("NVIDIA-RTX-6000-Ada-Generation", "49140", "RTX-6000-Ada-48GB", "RTX 6000 Ada 48GB", 48),
        ("NVIDIA-GeForce-RTX-4090", "24564", "RTX-4090-24GB", "RTX 4090 24GB", 24),
        ("NVIDIA-GeForce-RTX-3090", "24576", "RTX-3090-24GB", "RTX 3090 24GB", 24),
        ("NVIDIA-GeForce-RTX-5090", "32607", "RTX-5090-32GB", "RTX 5090 32GB", 32),
        ("NVIDIA-GB10", "", "GB10-128GB", "GB10 128GB", 128),
        ("NVIDIA-Thor", "", "Thor-128GB", "Thor 128GB", 128),
        ("NVIDIA-RTX-PRO-4500-Blackwell", "32623", "RTX-PRO-4500-Blackwell-32GB", "RTX PRO 4500 Blackwell 32GB", 32),
        ("Quadro-RTX-8000", "46080", "Quadro-RTX-8000-48GB", "Quadro RTX 8000 48GB", 48),
        ("NVIDIA-Z1000-96GB", "97871", "Z1000-96GB", "Z1000 96GB", 96),
        ("NVIDIA-Z1000-96GB", "", "Z1000-96GB", "Z1000 96GB", 96),
    ],
)
def test_any_cuda_gpu_is_sold_whole(product: str, memory: str, name: str, label: str, memory_gb: int) -> None:
    (found,) = DevicePluginDriver(MODELS).inventory([plain_node(product, memory, 2)], [])
    assert [(gpu.model, gpu.isolation) for gpu in found.gpus] == [(name, Isolation.DEVICE)] * 2
    model = next(model for model in (*MODELS, *found.new_models) if model.name == name)
    assert (model.label, model.memory_gb) == (label, memory_gb)


def test_an_unlisted_variant_has_its_own_model_and_the_profiles_of_its_product_line() -> None:
    labels = {"nvidia.com/mig.strategy": "mixed"}
    node = plain_node("NVIDIA-H100-80GB-HBM2e", "81559", 0, **labels)
    node.status.allocatable |= {"nvidia.com/mig-1g.10gb": "7"}
    node.metadata.labels["nvidia.com/gpu.count"] = "1"
    (found,) = DevicePluginDriver(MODELS).inventory([node], [])
    assert describe_node(found) == "1 x H100-80GB-HBM2e hardware: 7x1g.10gb"
    assert [model.label for model in found.new_models] == ["H100 80GB HBM2e"]


def test_a_gpu_without_any_memory_size_is_refused_with_the_label_to_set() -> None:
    (found,) = DevicePluginDriver(MODELS).inventory([plain_node("NVIDIA-Z1000", "")], [])
    assert found.gpus == ()
    assert "set the node label nvidia.com/gpu.memory" in found.problems[0]


@pytest.mark.parametrize(
    ("text", "mebibytes"),
    [("81559", 81559), ("81559Mi", 81559), ("80Gi", 81920), ("83516416Ki", 81559), ("85520809984", 81559),
     ("83516416", 81559), ("81559 MiB", 81559), ("80GiB", 81920), ("80 GB", 76293), ("80GB", 76293), ("80g", 76293),
     ("85520809984 B", 81559), ("79.6Gi", 81510), ("2Ti", 2097152), ("1.5.2", 0), ("-5", 0), ("0", 0), ("", 0),
     ("unknown", 0)],
)  # fmt: skip
def test_memory_sizes_are_read_in_any_unit(text: str, mebibytes: int) -> None:
    assert parse_memory_mib(text) == mebibytes


@pytest.mark.parametrize("memory", ["83516416", "80GB", "80GiB", "81559 MiB", "85520809984"])
def test_a_gpu_is_recognised_by_its_memory_in_any_unit(memory: str) -> None:
    (found,) = DevicePluginDriver(MODELS).inventory([plain_node("NVIDIA-H100-80GB-HBM3", memory)], [])
    assert [gpu.model for gpu in found.gpus] == ["H100-80GB"]


@pytest.mark.parametrize(
    ("model", "memory", "sold"),
    [
        ("GB200_4x", "186", "GB200-186GB"),
        ("Quadro_RTX_4000", "8", "Quadro-RTX-4000-8GB"),
        ("A100_PCIE_40GB", "41", "A100-PCIe-40GB"),
        ("H100_NVLINK_80GB", "80", "H100-80GB"),
        ("A100_NVLINK_80GB", "80", "A100-80GB"),
        ("A100_NVLINK", "40", "A100-40GB"),
        ("Tesla_V100_NVLINK", "16", "V100-SXM2-16GB"),
    ],
)
def test_the_labels_of_coreweave_give_product_and_memory(model: str, memory: str, sold: str) -> None:
    labels = {"gpu.nvidia.com/model": model, "gpu.nvidia.com/vram": memory}
    (found,) = DevicePluginDriver(MODELS).inventory([ready_node("n1", labels, {"nvidia.com/gpu": "1"})], [])
    assert [gpu.model for gpu in found.gpus] == [sold]


@pytest.mark.parametrize(
    ("mebibytes", "nominal"),
    [(15360, 16), (23034, 24), (46068, 48), (24564, 24), (81559, 80), (143771, 141), (97871, 96), (0, 0), (300, 1)],
)
def test_reported_memory_is_rounded_to_the_nominal_size(mebibytes: int, nominal: int) -> None:
    assert nominal_memory_gb(mebibytes) == nominal


@pytest.mark.parametrize(
    ("product", "model", "profile"),
    [
        ("NVIDIA-H100-NVL-MIG-1g.12gb", "H100-NVL-94GB", "1g.12gb"),
        ("NVIDIA-GH200-480GB-MIG-1g.12gb", "GH200-96GB", "1g.12gb"),
        ("NVIDIA-GB200-MIG-1g.24gb", "GB200-186GB", "1g.23gb"),
        ("NVIDIA-H200-MIG-1g.18gb.me", "H200-141GB", "1g.18gb+me"),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition-MIG-1g.24gb.gfx", "RTX-PRO-6000-Server-96GB", "1g.24gb+gfx"),
        (
            "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition-MIG-1g.24gb.me.all",
            "RTX-PRO-6000-Server-96GB",
            "1g.24gb+me.all",
        ),
    ],
)
def test_single_strategy_nodes_are_sold_by_the_profile_in_their_product(product: str, model: str, profile: str) -> None:
    node = plain_node(product, "11264", **{"nvidia.com/mig.strategy": "single"})
    (found,) = DevicePluginDriver(MODELS).inventory([node], [])
    assert found.problems == ()
    assert [(gpu.model, [cut.profile for cut in gpu.cuts]) for gpu in found.gpus] == [(model, [profile])]
    assert found.gpus[0].resource_name == "nvidia.com/gpu"


@pytest.mark.parametrize(
    ("product", "memory", "resource", "profile", "requested"),
    [
        ("NVIDIA-GB200", "189471", "mig-1g.24gb", "1g.23gb", "nvidia.com/mig-1g.24gb"),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "97887", "mig-1g.24gb.gfx", "1g.24gb+gfx", ""),
        ("NVIDIA-A100-SXM4-80GB", "81920", "mig-7g.79gb", "7g.80gb", "nvidia.com/mig-7g.79gb"),
    ],
)
def test_mixed_strategy_slices_are_requested_by_the_name_their_node_uses(
    product: str, memory: str, resource: str, profile: str, requested: str
) -> None:
    node = plain_node(product, memory, 1, **{"nvidia.com/mig.strategy": "mixed"})
    node.status.allocatable.clear()
    node.status.allocatable[f"nvidia.com/{resource}"] = "1"
    (found,) = DevicePluginDriver(MODELS).inventory([node], [])
    assert [(cut.profile, cut.resource_name) for gpu in found.gpus for cut in gpu.cuts] == [(profile, requested)]


VIRTUAL_GPUS = (
    "GRID-T4-16Q",
    "NVIDIA-A100-1-5C",
    "NVIDIA-RTX6000-Ada-48Q",
    "NVIDIA-RTX-Pro-6000-Blackwell-DC-96Q",
    "NVIDIA-RTX-Pro-6000-Blackwell-DC-4-96Q",
    "NVIDIA-H100XM-1-10CME",
)


@pytest.mark.parametrize("product", VIRTUAL_GPUS)
def test_virtual_gpus_are_not_sold(product: str) -> None:
    (found,) = DevicePluginDriver(MODELS).inventory([plain_node(product, "49152")], [])
    assert found.gpus == ()
    assert "is a virtual GPU" in found.problems[0]


def test_no_known_product_is_taken_for_a_virtual_gpu() -> None:
    names = [alias for model in MODELS for alias in (model.name, *model.aliases)]
    unlisted = ["T1000-8GB", "GH200-144G-HBM3e", "H20-3e", "PG506-232", "RTX-5090-D-v2", "Quadro-RTX-5000-with-Max-Q"]
    assert [name for name in (*names, *unlisted) if parse_product_name(name).is_virtual] == []


def test_a_node_labelled_as_having_virtual_gpus_sells_none_with_any_driver() -> None:
    marks = {"nvidia.com/vgpu.present": "true"}
    hami = {REGISTER_ANNOTATION: '[{"id": "GPU-a", "devmem": 49140, "type": "NVIDIA-NVIDIA A40"}]'}
    slices = slices_of("full-gpu-t4x2-openshift")
    found = [
        *DevicePluginDriver(MODELS).inventory([plain_node("NVIDIA-A40", "49140", **marks)], []),
        *HamiDriver(MODELS).inventory([ready_node("n1", marks, {}, hami)], []),
        *DraDriver(MODELS).inventory([ready_node(slices[0].spec.node_name, marks)], slices),
    ]
    assert len(found) == 3
    assert [gpu for node in found for gpu in node.gpus] == []
    assert all("is a virtual GPU" in problem for node in found for problem in node.problems)


@pytest.mark.parametrize("machine", ["g6f.large", "gr6f.4xlarge", "Standard_NV6ads_A10_v5", "Standard_NV72ads_A10_v5"])
def test_machine_types_with_parts_of_a_gpu_are_not_sold(machine: str) -> None:
    karpenter = {f"karpenter.k8s.aws/instance-gpu-{key}": text for key, text in
                 {"name": "l4", "manufacturer": "nvidia", "memory": "2861"}.items()}  # fmt: skip
    marks = {"node.kubernetes.io/instance-type": machine, **karpenter}
    (found,) = DevicePluginDriver(MODELS).inventory([ready_node("n1", marks, {"nvidia.com/gpu": "1"})], [])
    assert found.gpus == ()
    assert "is a virtual GPU" in found.problems[0]


GKE = "cloud.google.com/gke-"
GKE_NODES = {
    "a100 partition": ({"gpu-partition-size": "1g.5gb"}, "nvidia-tesla-a100", "7"),
    "h100 partitions": ({"gpu-partition-size": "1g.10gb"}, "nvidia-h100-80gb", "56"),
    "unknown partition": ({"gpu-partition-size": "1g.99gb"}, "nvidia-h100-80gb", "2"),
    "partitions not offered": ({"gpu-partition-size": "1g.5gb"}, "nvidia-tesla-a100", "0"),
    "shared partitions": (
        {"gpu-partition-size": "1g.5gb", "gpu-sharing-strategy": "time-sharing", "max-shared-clients-per-gpu": "2"},
        "nvidia-tesla-a100",
        "14",
    ),
    "time-sharing": ({"gpu-sharing-strategy": "time-sharing", "max-shared-clients-per-gpu": "4"}, "nvidia-l4", "8"),
    "three clients": ({"gpu-sharing-strategy": "time-sharing", "max-shared-clients-per-gpu": "3"}, "nvidia-l4", "3"),
    "mps": ({"gpu-sharing-strategy": "mps", "max-shared-clients-per-gpu": "2"}, "nvidia-l4", "2"),
    "clients alone": ({"max-shared-clients-per-gpu": "4"}, "nvidia-l4", "4"),
    "strategy alone": ({"gpu-sharing-strategy": "time-sharing"}, "nvidia-l4", "4"),
    "not shared": ({}, "nvidia-l4", "2"),
}
GKE_INVENTORY = {
    "a100 partition": "1 x A100-40GB hardware: 7x1g.5gb as nvidia.com/gpu",
    "h100 partitions": "8 x H100-80GB hardware: 7x1g.10gb as nvidia.com/gpu",
    "unknown partition": "not sold: H100 80GB HBM3 has no known MIG profile 1g.99gb",
    "partitions not offered": "not sold: its A100-SXM4-40GB is not offered to pods",
    "shared partitions": "not sold: slices of 1g.5gb have replicas",
    "time-sharing": "2 x L4-24GB none: 4xquarter as nvidia.com/gpu",
    "three clients": "not sold: each GPU has 3 replicas",
    "mps": "not sold: GKE shares its GPUs by MPS, which needs pods in the host's IPC namespace",
    "clients alone": "not sold: GKE shares its GPUs, and the labels",
    "strategy alone": "not sold: GKE shares its GPUs, and the labels",
    "not shared": "2 x L4-24GB device: 1xwhole-gpu as nvidia.com/gpu",
}


@pytest.mark.parametrize("case", GKE_NODES)
def test_gke_partitions_and_shares_are_never_sold_as_whole_gpus(case: str) -> None:
    """Only labels of GKE tell slices and shares from whole GPUs."""
    marks, accelerator, amount = GKE_NODES[case]
    labels = {f"{GKE}{name}": value for name, value in marks.items()} | {f"{GKE}accelerator": accelerator}
    (found,) = DevicePluginDriver(MODELS).inventory([ready_node("gke", labels, {"nvidia.com/gpu": amount})], [])
    assert describe_node(found).startswith(GKE_INVENTORY[case])


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ({"amd.com/gpu": "8"}, "AMD GPUs (amd.com/gpu: 8)"),
        (
            {"gpu.intel.com/i915": "1", "gpu.intel.com/xe": "2"},
            "Intel GPUs (gpu.intel.com/i915: 1, gpu.intel.com/xe: 2)",
        ),
        ({"intel.com/gpu": "1"}, "Intel GPUs (intel.com/gpu: 1)"),
        ({"google.com/tpu": "4"}, "Google TPUs (google.com/tpu: 4)"),
        ({"aws.amazon.com/neuroncore": "2"}, "AWS Neuron accelerators (aws.amazon.com/neuroncore: 2)"),
        ({"huawei.com/Ascend910": "8"}, "Huawei Ascend accelerators (huawei.com/Ascend910: 8)"),
    ],
)
def test_gpus_of_other_vendors_are_reported_as_not_supported_yet(resources: dict[str, str], said: str) -> None:
    nodes = [ready_node("other", {}, {"cpu": "64", **resources}), ready_node("cpu", {}, {"cpu": "8"})]
    for driver in (DevicePluginDriver(MODELS), DraDriver(MODELS), HamiDriver(MODELS)):
        (found,) = driver.inventory(nodes, [])
        assert (found.name, found.gpus) == ("other", ())
        assert said in found.problems[0]
        assert "not supported yet" in found.problems[0]


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, "AMD GPUs (amd.com/gpu.product-name)"),
        ({"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice"}, "Google TPUs"),
        ({"karpenter.k8s.aws/instance-accelerator-name": "inferentia"}, "AWS Neuron accelerators"),
        ({"karpenter.k8s.aws/instance-gpu-manufacturer": "amd"}, "AMD GPUs"),
    ],
)
def test_devices_of_other_vendors_without_a_plugin_are_seen_by_their_labels(labels: dict[str, str], said: str) -> None:
    for driver in (DevicePluginDriver(MODELS), DraDriver(MODELS), HamiDriver(MODELS)):
        (found,) = driver.inventory([ready_node("other", labels, {"cpu": "64"})], [])
        assert said in found.problems[0]
        assert "not supported yet" in found.problems[0]


@pytest.mark.parametrize("resources", [{"amd.com/gpu": "0"}, {"gpu.intel.com/xe_monitoring": "1"}])
def test_resources_without_a_device_are_no_gpus(resources: dict[str, str]) -> None:
    assert DevicePluginDriver(MODELS).inventory([ready_node("n1", {}, resources)], []) == []


def test_nvidia_gpus_without_a_driver_are_seen_by_their_pci_label() -> None:
    labels = {"feature.node.kubernetes.io/pci-10de.present": "true"}
    for driver in (DevicePluginDriver(MODELS), DraDriver(MODELS), HamiDriver(MODELS)):
        (found,) = driver.inventory([ready_node("n1", labels, {"cpu": "64"})], [])
        assert "install NVIDIA's GPU operator" in found.problems[0]
    assert HamiDriver(MODELS).inventory([ready_node("n1", labels, {"nvidia.com/gpu": "1"})], []) == []


A10_LABELS = {"nvidia.com/gpu.product": "NVIDIA-A10", "nvidia.com/gpu.count": "2", "nvidia.com/gpu.memory": "23028"}
OTHER_MANAGERS = {
    "passthrough": (
        {"nvidia.com/gpu.workload.config": "vm-passthrough", "nvidia.com/gpu.present": "true"},
        {"nvidia.com/GH100_H100_SXM5": "8"},
        "given to virtual machines",
    ),
    "vgpu": (
        {"nvidia.com/gpu.workload.config": "vm-vgpu", **A10_LABELS},
        {"nvidia.com/NVIDIA_A10-12Q": "2"},
        "given to virtual machines",
    ),
    "passthrough by default": (
        {"nvidia.com/gpu.deploy.sandbox-device-plugin": "true", **A10_LABELS},
        {"nvidia.com/a10": "2"},
        "given to virtual machines",
    ),
    "volcano": (A10_LABELS, {"volcano.sh/vgpu-number": "20", "nvidia.com/gpu": "0"}, "Volcano's vGPU plugin"),
}


@pytest.mark.parametrize("case", OTHER_MANAGERS)
def test_gpus_that_other_software_manages_are_refused_with_its_name(case: str) -> None:
    labels, offered, said = OTHER_MANAGERS[case]
    for driver in (DevicePluginDriver(MODELS), DraDriver(MODELS), HamiDriver(MODELS)):
        (found,) = driver.inventory([ready_node("n1", labels, offered)], [])
        assert found.gpus == ()
        assert said in found.problems[0]


def test_resources_of_unknown_names_are_named() -> None:
    (found,) = DevicePluginDriver(MODELS).inventory([ready_node("n1", A10_LABELS, {"nvidia.com/GA102GL_A10": "2"})], [])
    assert "the node offers nvidia.com/GA102GL_A10 instead of nvidia.com/gpu" in found.problems[0]


@pytest.mark.parametrize("product", ["NVIDIA-B300-SXM6-AC-MIG-1g.36gb", "NVIDIA-A100X-MIG-1g.10gb"])
def test_an_unknown_profile_of_the_strategy_single_is_refused_as_such(product: str) -> None:
    """The labelled memory is the slice's, so setting that label would not help."""
    node = plain_node(product, "9728", 7, **{"nvidia.com/mig.strategy": "single"})
    (found,) = DevicePluginDriver(MODELS).inventory([node], [])
    assert "has no known MIG profile 1g." in found.problems[0]
    assert "GPUBROKER_EXTRA_GPU_MODELS" in found.problems[0]


@pytest.mark.parametrize("offered", [{}, {"nvidia.com/gpu": "2"}])
def test_a_dra_node_without_resource_slices_says_so(offered: dict[str, str]) -> None:
    (found,) = DraDriver(MODELS).inventory([ready_node("n1", A10_LABELS, offered), ready_node("cpu", {})], [])
    assert "not published as ResourceSlices" in found.problems[0]
    assert found.offers_none == (not offered)  # then GPUs it had are missing, which needs a confirmation if many are


def test_a_dra_node_whose_pool_has_no_devices_says_so() -> None:
    slices = slices_of("full-gpu-t4x2-openshift")
    slices[0].spec.devices = []
    (found,) = DraDriver(MODELS).inventory([ready_node(slices[0].spec.node_name, {})], slices)
    assert (found.gpus, found.offers_none) == ((), True)
    assert "publishes no devices" in found.problems[0]


def test_a_gpu_that_may_be_passed_through_is_held_by_a_claim_for_that() -> None:
    gpus, vfio = slices_of("full-gpu-h100-v1", "vfio-passthrough")
    bus = "resource.kubernetes.io/pciBusID"
    vfio.spec.devices[0].attributes[bus] = gpus.spec.devices[0].attributes[bus]
    gpus.spec.devices.append(vfio.spec.devices[0])
    (found,) = DraDriver(MODELS).inventory([ready_node(gpus.spec.node_name, {})], [gpus])
    assert [gpu.devices for gpu in found.gpus] == [("gpu-0",), ("gpu-1", "gpu-vfio-0")]
    assert found.problems == ()


def test_devices_that_allow_several_allocations_are_not_sold_in_the_form_of_v1beta1_either() -> None:
    body = json.loads(json.dumps(SLICES["consumable-shares"]["object"]))
    device = body["spec"]["devices"][0]
    body["spec"]["devices"] = [{"name": device.pop("name"), "basic": device}]
    (found,) = DraDriver(MODELS).inventory(
        [ready_node(body["spec"]["nodeName"], {})], [msgspec.convert(body, ResourceSlice)]
    )
    assert found.gpus == ()
    assert "several allocations at once" in found.problems[0]


HAMI_GPU = '[{"id": "GPU-a", "devmem": 81559, "type": "NVIDIA-NVIDIA H100 80GB HBM3", "numa": %d, "mode": "%s"}]'


def hami_node(numa: int = 0, mode: str = "hami-core", handshake: str = "") -> DiscoveredNode:
    marks = {REGISTER_ANNOTATION: HAMI_GPU % (numa, mode), "hami.io/node-handshake": handshake}
    (found,) = HamiDriver(MODELS).inventory([ready_node("n1", {}, {}, marks)], [])
    return found


def test_a_node_that_hamis_scheduler_has_removed_takes_nothing_new() -> None:
    removed = hami_node(handshake="Deleted_2026.11.20 08:00:00")
    assert "HAMi's scheduler has removed" in removed.refusal
    assert len(removed.gpus) == 1  # its leases go on
    assert hami_node(handshake="Requesting_2026.11.20 08:00:00").refusal == ""


@pytest.mark.parametrize("mode", ["mig", "mps"])
def test_a_gpu_that_hami_shares_in_another_mode_offers_nothing(mode: str) -> None:
    found = hami_node(mode=mode)
    assert [gpu.published.starts() if gpu.published else None for gpu in found.gpus] == [{}]
    assert f"in mode {mode}" in found.problems[0]
    assert [gpu.published for gpu in hami_node(mode="").gpus + hami_node().gpus] == [None, None]


def test_the_mode_is_read_from_hamis_text_form_too() -> None:
    text = "GPU-a,10,81559,100,NVIDIA-NVIDIA H100 80GB HBM3,-1,true,0,mig:"
    (found,) = HamiDriver(MODELS).inventory([ready_node("n1", {}, {}, {REGISTER_ANNOTATION: text})], [])
    assert [(gpu.numa, gpu.published.starts() if gpu.published else None) for gpu in found.gpus] == [("", {})]


def test_a_negative_numa_node_of_hami_is_unknown() -> None:
    assert [hami_node(numa=numa).gpus[0].numa for numa in (-1, 0, 1)] == ["", "0", "1"]


def slices_of(*cases: str) -> list[ResourceSlice]:
    return [msgspec.convert(SLICES[case]["object"], ResourceSlice) for case in cases]


def dra_node(*cases: str) -> DiscoveredNode:
    slices = slices_of(*cases)
    nodes = [ready_node(name, {}) for name in sorted({each.spec.node_name for each in slices})]
    (found,) = DraDriver(MODELS).inventory(nodes, slices)
    return found


DYNAMIC = ("dynamic-mig-split-counters", "dynamic-mig-split-devices-gpu0", "dynamic-mig-split-devices-gpu1")
DRA_INVENTORY = {
    ("full-gpu-h100-v1", "compute-domain-same-pool-name"): "2 x H100-80GB device: 1xwhole-gpu",
    ("full-gpu-t4x2-openshift",): "2 x T4-16GB device: 1xwhole-gpu",
    ("vgpu-a100-old-attrs",): "not sold: GPU gpu-0: its A100-8C is a virtual GPU",
    ("vgpu-a100-new-attrs",): "not sold: GPU gpu-0: its A100-10C is a virtual GPU",
    ("full-gpu-gb200-v1beta1-basic",): "4 x GB200-186GB device: 1xwhole-gpu",
    ("static-mig-with-parent-listed",): (
        "1 x A100-PCIe-80GB hardware: 1x1g.10gb+1x2g.20gb+1x3g.40gb and 1 x A100-PCIe-80GB device: 1xwhole-gpu"
    ),
    ("static-mig-no-parent-a30",): "1 x A30-24GB hardware: 2x1g.6gb+1x2g.12gb",
    DYNAMIC: "2 x H100-80GB hardware: ",
    (*DYNAMIC, "stale-generation-left-over"): "2 x H100-80GB hardware: ",
    ("device-health-taints",): "4 x H100-80GB device: 1xwhole-gpu",
    ("consumable-shares",): "not sold: GPU gpu-0: it allows several allocations at once",
    ("vfio-passthrough",): "not sold: gpu-vfio-0 are passed through to virtual machines",
}


def test_every_vendor_resource_slice_has_an_expected_inventory() -> None:
    assert {case for cases in DRA_INVENTORY for case in cases} == SLICES.keys()


@pytest.mark.parametrize("cases", DRA_INVENTORY, ids="+".join)
def test_vendor_resource_slices_are_sold_as_expected(cases: tuple[str, ...]) -> None:
    assert describe_node(dra_node(*cases)).startswith(DRA_INVENTORY[cases])


def test_emulated_dynamic_mig_devices_have_the_form_the_driver_writes() -> None:
    """The fixture follows the driver at commit 95932046 (v0.5.0-dev)."""
    vendor = {each["name"]: each for case in DYNAMIC[1:] for each in SLICES[case]["object"]["spec"]["devices"]}
    uuids = {gpu: vendor[f"gpu-{gpu}"]["attributes"]["uuid"]["string"] for gpu in (0, 1)}
    emulated = {
        each["name"]: each for part in published("worker-h100-5", gpus=2) for each in part["spec"].get("devices", [])
    }
    for name, device in vendor.items():
        text = json.dumps(emulated[name], sort_keys=True)
        for gpu, theirs in uuids.items():
            text = text.replace(uuid("worker-h100-5", gpu), theirs)
        assert text == json.dumps(device, sort_keys=True)
    (counters,) = [
        part["spec"]["sharedCounters"] for part in published("n", gpus=2) if "sharedCounters" in part["spec"]
    ]
    assert counters == SLICES[DYNAMIC[0]]["object"]["spec"]["sharedCounters"]


def test_emulated_static_mig_devices_have_the_form_the_driver_writes() -> None:
    """The fixture follows version 25.8, with the amounts of an H100."""
    devices = SLICES["static-mig-with-parent-listed"]["object"]["spec"]["devices"]
    (theirs,) = (each for each in devices if each["name"] == "gpu-0-mig-9-0-4")
    (profile,) = (each for each in H100_PROFILES if each.name == "3g.40gb")
    (ours,) = static("n", 0, [(profile, 0)])
    assert ours["name"] == theirs["name"]
    assert {name: list(value) for name, value in ours["attributes"].items()} == {
        name: list(value) for name, value in theirs["attributes"].items()
    }
    assert (set(ours), set(ours["capacity"])) == (set(theirs), set(theirs["capacity"]))


def test_dynamic_mig_placements_are_read_from_consumed_counters() -> None:
    found = dra_node(*DYNAMIC)
    published = {gpu.uuid: gpu.published.starts() if gpu.published else None for gpu in found.gpus}
    expected = {"1g.10gb": [0, 1, 2, 3, 4, 5, 6], "2g.20gb": [0, 2, 4], "3g.40gb": [0, 4], "whole-gpu": [0]}
    assert list(published.values()) == [expected] * 2


@pytest.mark.parametrize("cases", [DYNAMIC[:1], DYNAMIC[:2], DYNAMIC[1:]], ids="+".join)
def test_an_incomplete_pool_changes_no_inventory(cases: tuple[str, ...]) -> None:
    found = dra_node(*cases)
    assert (found.gpus, found.incomplete) == ((), True)
    assert "has not published all ResourceSlices" in found.problems[0]


def test_device_taints_that_refuse_pods_mark_a_gpu_as_faulty() -> None:
    gpus = dra_node("device-health-taints").gpus
    assert [(gpu.healthy, gpu.fault, gpu.lost) for gpu in gpus] == [(False, "xid=79", True), *[(True, "", False)] * 3]


def dynamic_node(tainted: Callable[[str], bool], key: str = "gpu.nvidia.com/xid", value: str = "94") -> DiscoveredNode:
    """Return a node with two dynamic MIG GPUs, some devices tainted."""
    slices = slices_of(*DYNAMIC)
    for each in slices:
        for device in each.spec.devices:
            device.taints = [Taint(key=key, value=value, effect="NoSchedule")] if tainted(device.name) else []
    (found,) = DraDriver(MODELS).inventory([ready_node(slices[0].spec.node_name, {})], slices)
    return found


def test_a_tainted_placement_of_dynamic_mig_is_not_offered() -> None:
    faulty, sound = dynamic_node(lambda name: name.startswith("gpu-0-mig-1g")).gpus
    assert faulty.published
    assert sound.published
    assert "1g.10gb" not in faulty.published.starts()
    assert faulty.published.starts()["3g.40gb"] == [0, 4]
    assert sound.published.starts()["1g.10gb"] == [0, 1, 2, 3, 4, 5, 6]
    assert (faulty.healthy, faulty.lost) == (True, False)


def test_a_gpu_whose_placements_are_all_tainted_is_faulty() -> None:
    faulty, sound = dynamic_node(lambda name: name.startswith("gpu-0-mig")).gpus
    assert (faulty.healthy, faulty.fault, faulty.lost) == (False, "xid=94", True)
    assert (sound.healthy, sound.lost) == (True, False)


def test_a_lost_gpu_is_lost_with_its_placements_although_these_have_no_taint() -> None:
    lost, sound = dynamic_node(lambda name: name == "gpu-0", key="gpu.nvidia.com/gpu-lost", value="").gpus
    assert (lost.healthy, lost.fault, lost.lost) == (False, "gpu-lost", True)
    assert (sound.healthy, sound.lost) == (True, False)


def test_an_xid_of_a_gpu_alone_does_not_lose_its_leases_slices() -> None:
    faulty, _ = dynamic_node(lambda name: name == "gpu-0").gpus
    assert (faulty.healthy, faulty.lost) == (False, False)


def test_devices_that_are_all_unhealthy_are_told_from_a_missing_plugin() -> None:
    """A kubelet counts healthy devices and forgets those of a missing plugin."""
    case = NODES["h100-sxm-full-8"]

    def is_unhealthy(capacity: dict[str, str]) -> tuple[bool, bool]:
        node = ready_node("n1", case["labels"], {**case["allocatable"], "nvidia.com/gpu": "0"})
        node.status.capacity = capacity
        (found,) = DevicePluginDriver(MODELS).inventory([node], [])
        return found.offers_none, found.all_unhealthy

    assert is_unhealthy({"nvidia.com/gpu": "8"}) == (True, True)
    assert is_unhealthy({"nvidia.com/gpu": "0"}) == (True, False)
    assert is_unhealthy({}) == (True, False)


def test_hami_reports_a_faulty_gpu_as_lost() -> None:
    health = {"GPU-a": "false", "GPU-b": "true"}
    text = "".join(f"{uuid},10,40960,100,NVIDIA-NVIDIA A100-PCIE-40GB,0,{well}:" for uuid, well in health.items())
    (found,) = HamiDriver(MODELS).inventory([ready_node("n1", {}, {}, {REGISTER_ANNOTATION: text})], [])
    assert [(gpu.healthy, gpu.lost) for gpu in found.gpus] == [(False, True), (True, False)]


@pytest.mark.parametrize(
    ("text", "models"),
    [
        ("GPU-a,10,40960,100,NVIDIA-NVIDIA A100-PCIE-40GB,0,true:", ["A100-PCIe-40GB"]),
        # Memory scaling of two: twice the memory is registered.
        ("GPU-a,10,81920,100,NVIDIA-NVIDIA A100-PCIE-40GB,0,true,0,hami-core:", ["A100-PCIe-40GB"]),
        ('[{"id": "GPU-a", "devmem": 163118, "type": "NVIDIA-NVIDIA H100 80GB HBM3"}]', ["H100-80GB"]),
        ('[{"id": "GPU-a", "devmem": 24564, "type": "NVIDIA-NVIDIA GeForce RTX 4090"}]', ["RTX-4090-24GB"]),
        ("GPU-a,10,40960,100,NVIDIA-A100-PCIE-40GB,0,true:GPU-b,10", []),
    ],
)
def test_hami_gpus_are_sold_with_their_real_memory(text: str, models: list[str]) -> None:
    (found,) = HamiDriver(MODELS).inventory([ready_node("n1", {}, {}, {REGISTER_ANNOTATION: text})], [])
    assert [gpu.model for gpu in found.gpus] == models


def test_hami_needs_the_memory_label_for_a_product_that_names_no_memory() -> None:
    text = '[{"id": "GPU-a", "devmem": 97871, "type": "NVIDIA-NVIDIA Z1000"}]'
    annotations = {REGISTER_ANNOTATION: text}
    (unlabelled,) = HamiDriver(MODELS).inventory([ready_node("n1", {}, {}, annotations)], [])
    assert "set the node label nvidia.com/gpu.memory" in unlabelled.problems[0]
    labels = {"nvidia.com/gpu.product": "NVIDIA-Z1000", "nvidia.com/gpu.memory": "48935"}
    (labelled,) = HamiDriver(MODELS).inventory([ready_node("n1", labels, {}, annotations)], [])
    assert [gpu.model for gpu in labelled.gpus] == ["Z1000-48GB"]


def test_a_product_without_a_name_is_refused() -> None:
    with pytest.raises(UnidentifiedGpu, match="install gpu-feature-discovery"):
        identify_gpu(GpuDescription("  NVIDIA "), MODELS)
