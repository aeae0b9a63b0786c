"""Devices that are seen on nodes and not sold.

They are of other vendors, have no driver, or are managed by other software.
"""

from collections.abc import Collection, Iterable

from broker.provisioners.kubernetes.client.objects import ClusterNode
from broker.provisioners.kubernetes.client.quantities import parse_quantity
from broker.provisioners.kubernetes.drivers.discovered_inventory import DiscoveredNode

# By the beginning of a resource's name.
OTHER_VENDORS = {
    "amd.com/": "AMD GPUs",
    "gpu.intel.com/": "Intel GPUs",
    "intel.com/gpu": "Intel GPUs",
    "habana.ai/": "Intel Gaudi accelerators",
    "google.com/tpu": "Google TPUs",
    "cloud-tpus.google.com/": "Google TPUs",
    "aws.amazon.com/neuron": "AWS Neuron accelerators",
    "huawei.com/Ascend": "Huawei Ascend accelerators",
    "huawei.com/ascend": "Huawei Ascend accelerators",
    "qualcomm.com/qaic": "Qualcomm accelerators",
    "cambricon.com/": "Cambricon accelerators",
    "metax-tech.com/": "MetaX GPUs",
    "mthreads.com/": "Moore Threads GPUs",
    "hygon.com/dcu": "Hygon DCUs",
}
MONITORING = "_monitoring"  # Intel's resources for reading the state of GPUs
# By the beginning of a node label, for nodes whose device plugin is missing.
VENDOR_LABELS = {
    "amd.com/gpu.": "AMD GPUs",
    "beta.amd.com/gpu.": "AMD GPUs",
    "gpu.intel.com/": "Intel GPUs",
    "cloud.google.com/gke-tpu-": "Google TPUs",
    "karpenter.k8s.aws/instance-accelerator-": "AWS Neuron accelerators",
    "accelerator/huawei-": "Huawei Ascend accelerators",
}
UNSUPPORTED = "it has {vendor} ({seen}), which are seen and not supported yet; only NVIDIA GPUs are sold"
NVIDIA_PCI_LABELS = tuple(
    f"feature.node.kubernetes.io/pci-{device}.present" for device in ("10de", "0300_10de", "0302_10de")
)
NO_DRIVER = (
    "it has NVIDIA GPUs by the label {label}, and no driver offers them; install NVIDIA's GPU operator, or its driver"
    " and device plugin, on this node"
)
WORKLOAD_LABEL = "nvidia.com/gpu.workload.config"
SANDBOX_LABELS = ("nvidia.com/gpu.deploy.sandbox-device-plugin", "nvidia.com/gpu.deploy.vgpu-device-manager")
FOR_VIRTUAL_MACHINES = (
    "its GPUs are given to virtual machines, so pods cannot use them; set the node label"
    f" {WORKLOAD_LABEL} to container to sell them"
)
VOLCANO_ANNOTATION, VOLCANO_RESOURCE = "volcano.sh/node-vgpu-register", "volcano.sh/vgpu-"
VOLCANO_MANAGES = (
    "Volcano's vGPU plugin manages its GPUs, which is not supported; run NVIDIA's device plugin or HAMi on this node"
)


def unsupported_nodes(nodes: Iterable[ClusterNode], described: Collection[str]) -> list[DiscoveredNode]:
    """Return the nodes with devices that are not supported, each with that as its problem."""
    return [
        DiscoveredNode(node.metadata.name, (), (why,))
        for node in nodes
        if node.metadata.name not in described and (why := _unsupported_devices(node))
    ]


def other_gpu_manager(node: ClusterNode) -> str:
    """Return which other software manages a node's NVIDIA GPUs; else empty."""
    labels = node.metadata.labels
    sandboxed = any(labels.get(name) == "true" for name in SANDBOX_LABELS)
    if labels.get(WORKLOAD_LABEL, "").startswith("vm-") or (sandboxed and WORKLOAD_LABEL not in labels):
        return FOR_VIRTUAL_MACHINES
    offered = any(name.startswith(VOLCANO_RESOURCE) and _is_positive(n) for name, n in node.status.allocatable.items())
    return VOLCANO_MANAGES if offered or VOLCANO_ANNOTATION in node.metadata.annotations else ""


def _unsupported_devices(node: ClusterNode) -> str:
    labels = node.metadata.labels
    for prefix, vendor in OTHER_VENDORS.items():
        if amounts := sorted(f"{name}: {n}" for name, n in node.status.allocatable.items() if _counts(name, n, prefix)):
            return UNSUPPORTED.format(vendor=vendor, seen=", ".join(amounts))
    for prefix, vendor in VENDOR_LABELS.items():
        if named := sorted(label for label in labels if label.startswith(prefix)):
            return UNSUPPORTED.format(vendor=vendor, seen=named[0])
    if labels.get("karpenter.k8s.aws/instance-gpu-manufacturer") == "amd":
        return UNSUPPORTED.format(vendor="AMD GPUs", seen="karpenter.k8s.aws/instance-gpu-manufacturer=amd")
    if any(name.startswith("nvidia.com/") and _is_positive(n) for name, n in node.status.allocatable.items()):
        return ""
    pci = next((label for label in NVIDIA_PCI_LABELS if labels.get(label) == "true"), "")
    return NO_DRIVER.format(label=pci) if pci else ""


def _counts(name: str, amount: str, prefix: str) -> bool:
    return name.startswith(prefix) and not name.endswith(MONITORING) and _is_positive(amount)


def _is_positive(amount: str) -> bool:
    return parse_quantity(amount) > 0
