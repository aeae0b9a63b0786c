"""GPU products named by a cloud's own node labels, for nodes without GPU Feature Discovery."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from broker.domain.geometry.gpu_identification import GpuDescription
from broker.domain.geometry.product_names import mig_profile_name
from broker.provisioners.kubernetes.client.quantities import parse_memory_mib

GKE_ACCELERATOR = "cloud.google.com/gke-accelerator"
GKE_PARTITION = "cloud.google.com/gke-gpu-partition-size"
GKE_SHARING_STRATEGY = "cloud.google.com/gke-gpu-sharing-strategy"
GKE_CLIENTS_PER_GPU = "cloud.google.com/gke-max-shared-clients-per-gpu"
GKE_MPS = (
    "GKE shares its GPUs by MPS, which needs pods in the host's IPC namespace, and leases have none; use GPU sharing"
    " strategy time-sharing for its node pool, or none"
)
GKE_SHARING_UNKNOWN = (
    "GKE shares its GPUs, and the labels {strategy} and {clients} do not say how; create its node pool anew with a GPU"
    " sharing strategy and the number of clients per GPU"
)
COREWEAVE_MODEL, COREWEAVE_MEMORY = "gpu.nvidia.com/model", "gpu.nvidia.com/vram"  # in GiB
COREWEAVE_COUNT = re.compile(r"_\d{1,2}x$", re.ASCII)  # the end of GB200_4x
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
    # Parts of a GPU: virtual GPUs.
    (r"g6f\.(?:large|xlarge)", "L4-3Q"),
    (r"g6f\.2xlarge", "L4-6Q"),
    (r"g6f\.4xlarge|gr6f\.4xlarge", "L4-12Q"),
    (r"Standard_NV6ads_A10_v5", "A10-4Q"),
    (r"Standard_NV12ads_A10_v5", "A10-8Q"),
    (r"Standard_NV18ads_A10_v5", "A10-12Q"),
    (r"Standard_NV\d+adm?s_A10_v5", "A10-24Q"),
)


@dataclass(frozen=True, slots=True)
class GkeSharing:
    """How GKE shares each GPU of a node among pods."""

    clients: int  # replicas of each GPU; 1: unknown
    problem: str = ""  # why they are not sold


def read_gke_sharing(labels: Mapping[str, str]) -> GkeSharing | None:
    """Return how GKE shares a node's GPUs; None where it does not.

    All clients request nvidia.com/gpu, as pods with a whole GPU do.
    """
    strategy, number = labels.get(GKE_SHARING_STRATEGY, ""), labels.get(GKE_CLIENTS_PER_GPU, "")
    clients = int(number) if number.isascii() and number.isdigit() else 0
    if strategy in ("", "none") and clients <= 1:
        return None
    if strategy == "mps":
        return GkeSharing(max(clients, 1), GKE_MPS)
    if strategy == "time-sharing" and clients > 1:
        return GkeSharing(clients)
    return GkeSharing(1, GKE_SHARING_UNKNOWN.format(strategy=GKE_SHARING_STRATEGY, clients=GKE_CLIENTS_PER_GPU))


def gke_partition(labels: Mapping[str, str]) -> str:
    """Return the MIG profile that GKE offers as nvidia.com/gpu on a node; else empty."""
    return mig_profile_name(labels.get(GKE_PARTITION, ""))


def describe_cloud_gpu(labels: Mapping[str, str]) -> GpuDescription | None:
    """Return the product and memory that cloud labels name, or None."""
    if accelerator := labels.get(GKE_ACCELERATOR, ""):
        return GpuDescription(GKE_PRODUCTS.get(accelerator, accelerator)) if "tpu" not in accelerator else None
    if model := labels.get(COREWEAVE_MODEL, ""):
        gibibytes = labels.get(COREWEAVE_MEMORY, "")
        memory = parse_memory_mib(f"{gibibytes}Gi" if gibibytes.isdigit() else gibibytes)
        return GpuDescription(COREWEAVE_COUNT.sub("", model), memory)
    machine = labels.get(INSTANCE_TYPE, "")
    product = next((found for pattern, found in MACHINE_PRODUCTS if re.fullmatch(pattern, machine)), "")
    if product:
        return GpuDescription(product)
    if labels.get(f"{KARPENTER}manufacturer", "") == "nvidia":
        memory = parse_memory_mib(labels.get(f"{KARPENTER}memory", ""))
        return GpuDescription(labels.get(f"{KARPENTER}name", ""), memory)
    return None
