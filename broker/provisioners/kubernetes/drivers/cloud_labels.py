"""GPU products named by a cloud's own node labels, for nodes without GPU Feature Discovery."""

import re
from collections.abc import Mapping

from broker.domain.geometry.gpu_identification import GpuDescription
from broker.provisioners.kubernetes.client.quantities import parse_memory_mib

GKE_ACCELERATOR = "cloud.google.com/gke-accelerator"
COREWEAVE_MODEL = "gpu.nvidia.com/model"
KARPENTER = "karpenter.k8s.aws/instance-gpu-"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
# Values of GKE's label that do not contain the product's name and memory.
# Source: Google's reference of AcceleratorType, and the machine series they belong to.
GKE_PRODUCTS = {
    "nvidia-tesla-a100": "A100-SXM4-40GB",
    "nvidia-a100-80gb": "A100-SXM4-80GB",
    "nvidia-h100-80gb": "H100-80GB-HBM3",
    "nvidia-h100-mega-80gb": "H100-80GB-HBM3",
    "nvidia-h200-141gb": "H200",
    "nvidia-tesla-v100": "V100-SXM2-16GB",
    "nvidia-tesla-p100": "P100-PCIE-16GB",
}
# Machine types by pattern. Source: the GPU machine types of AWS (EC2 accelerated computing) and Azure (N series).
MACHINE_PRODUCTS = (
    (r"g4dn\..+", "T4"),
    (r"g5\..+", "A10G"),
    (r"g6\..+", "L4"),
    (r"g6e\..+", "L40S"),
    (r"p3\..+", "V100-SXM2-16GB"),
    (r"p3dn\..+", "V100-SXM2-32GB"),
    (r"p4d\..+", "A100-SXM4-40GB"),
    (r"p4de\..+", "A100-SXM4-80GB"),
    (r"p5\..+", "H100-80GB-HBM3"),
    (r"p5en?\..+", "H200"),
    (r"p6-b200\..+", "B200"),
    (r"p6-b300\..+", "B300"),
    (r"Standard_NC\d+as_T4_v3", "T4"),
    (r"Standard_NC\d+ads_A100_v4", "A100-80GB-PCIe"),
    (r"Standard_ND96asr_v4", "A100-SXM4-40GB"),
    (r"Standard_ND96amsr_A100_v4", "A100-SXM4-80GB"),
    (r"Standard_NC\d+ad(i?)s_H100_v5", "H100-NVL"),
    (r"Standard_ND96isr_H100_v5", "H100-80GB-HBM3"),
    (r"Standard_ND96isr_H200_v5", "H200"),
    (r"Standard_NC\d+s_v3", "V100-PCIE-16GB"),
)


def describe_cloud_gpu(labels: Mapping[str, str]) -> GpuDescription | None:
    """Return the product and memory that cloud labels name, or None."""
    if accelerator := labels.get(GKE_ACCELERATOR, ""):
        return GpuDescription(GKE_PRODUCTS.get(accelerator, accelerator)) if "tpu" not in accelerator else None
    if model := labels.get(COREWEAVE_MODEL, ""):
        return GpuDescription(model)
    machine = labels.get(INSTANCE_TYPE, "")
    product = next((found for pattern, found in MACHINE_PRODUCTS if re.fullmatch(pattern, machine)), "")
    if product:
        return GpuDescription(product)
    if labels.get(f"{KARPENTER}manufacturer", "") == "nvidia":
        memory = parse_memory_mib(labels.get(f"{KARPENTER}memory", ""))
        return GpuDescription(labels.get(f"{KARPENTER}name", ""), memory)
    return None
