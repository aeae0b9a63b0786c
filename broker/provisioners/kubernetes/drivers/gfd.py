"""Node labels that describe GPUs: of GPU Feature Discovery, or of a cloud.

Product names change with mode and version, so they are parsed and never compared as they are.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from broker.domain.geometry.gpu_identification import GpuDescription, identify_gpu
from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.product_names import mig_profile_name, parse_product_name
from broker.domain.lifecycle.states import Isolation
from broker.provisioners.kubernetes.client.quantities import parse_memory_mib
from broker.provisioners.kubernetes.drivers.cloud_labels import describe_cloud_gpu, gke_partition, read_gke_sharing

PREFIX = "nvidia.com/"
GPU_RESOURCE = f"{PREFIX}gpu"
SHARED_AS = {"time-slicing": Isolation.NONE, "mps": Isolation.SOFT}
SLICE_LABEL = re.compile(
    r"nvidia\.com/(mig-\d+g\.\d+gb[a-z.+-]*?)\.(?:count|replicas|sharing-strategy|product)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class GpuLabels:
    """What a node's labels say about its GPUs, which are all one product."""

    product: str  # without vendor, slice and sharing suffixes; empty: not labelled
    slice_profile: str  # set where all GPUs are cut into this one profile and a slice is labelled as a GPU
    mig_invalid: bool  # its MIG layout breaks the strategy `single`
    count: int | None  # None: not labelled
    memory_mib: int  # of what is labelled as a GPU; 0: not labelled
    compute_capability: str  # 9.0; empty: not labelled
    replicas: int
    strategy: str  # MIG strategy: none, single or mixed
    shared: bool  # what is labelled as a GPU is a replica
    sharing: Isolation | None  # how it is shared; None: not shared, or in an unknown way
    sharing_problem: str  # why its shares are not sold; empty: they are, or there are none
    shared_slices: tuple[str, ...]  # MIG profiles whose slices have replicas
    slices: Mapping[str, int]  # number of slices of each MIG profile
    is_virtual: bool  # its GPUs are virtual


def read_gpu_labels(labels: Mapping[str, str], allocatable: Mapping[str, str] | None = None) -> GpuLabels | None:
    """Read a node's labels; None for a node without NVIDIA GPUs.

    A node that offers GPUs has some, whatever its labels.
    """
    seen = GpuDescription(
        labels.get(f"{PREFIX}gpu.product", ""), parse_memory_mib(labels.get(f"{PREFIX}gpu.memory", ""))
    )
    if not seen.product:
        seen = describe_cloud_gpu(labels) or seen
    if not seen.product and not _offers_gpus(allocatable or {}) and f"{PREFIX}gpu.present" not in labels:
        return None
    product = parse_product_name(seen.product)
    by_gke = read_gke_sharing(labels)
    shared = product.replica or _is_shared(labels, "gpu") or by_gke is not None
    replicas = max(_label_number(labels, "gpu.replicas") or 0, by_gke.clients if by_gke else 0, 1)
    strategy = "time-slicing" if by_gke else labels.get(f"{PREFIX}gpu.sharing-strategy", "none")
    cut = [name for label in labels if (name := _mig_resource_of(label))]
    return GpuLabels(
        product=product.name,
        slice_profile=product.mig_profile or gke_partition(labels),
        mig_invalid=product.mig_invalid,
        count=_label_number(labels, "gpu.count"),
        memory_mib=seen.memory_mib,
        compute_capability=_compute_capability(labels),
        replicas=replicas,
        strategy=labels.get(f"{PREFIX}mig.strategy", "none"),
        shared=shared,
        sharing=SHARED_AS.get(strategy) if replicas > 1 else None,
        sharing_problem=by_gke.problem if by_gke else "",
        shared_slices=tuple(sorted(_profile_name(name) for name in set(cut) if _is_shared(labels, name))),
        slices={
            _profile_name(name): _label_number(labels, f"{name}.count") or 0
            for name in cut
            if f"{PREFIX}{name}.count" in labels
        },
        is_virtual=has_virtual_gpus(labels),
    )


def _offers_gpus(allocatable: Mapping[str, str]) -> bool:
    return any(name == GPU_RESOURCE or name.startswith(f"{PREFIX}mig-") for name in allocatable)


def _compute_capability(labels: Mapping[str, str]) -> str:
    major, minor = (_label_number(labels, f"gpu.compute.{part}") for part in ("major", "minor"))
    return "" if major is None or minor is None else f"{major}.{minor}"


def _is_shared(labels: Mapping[str, str], what: str) -> bool:
    """Tell whether any label of a GPU or slice mentions replicas.

    One is enough, for labels may be of different ages.
    """
    strategy = labels.get(f"{PREFIX}{what}.sharing-strategy", "none")
    named = parse_product_name(labels.get(f"{PREFIX}{what}.product", "")).replica
    return (_label_number(labels, f"{what}.replicas") or 0) > 1 or strategy not in ("none", "") or named


def _mig_resource_of(label: str) -> str:
    """Return the MIG resource a label is about, such as mig-1g.10gb; else empty."""
    found = SLICE_LABEL.fullmatch(label)
    return found[1] if found else ""


def _profile_name(resource: str) -> str:
    return mig_profile_name(resource.removeprefix("mig-"))


def has_virtual_gpus(labels: Mapping[str, str]) -> bool:
    """Tell whether the GPUs of a node, which is a virtual machine, are virtual."""
    return labels.get(f"{PREFIX}vgpu.present") == "true"


def nvlink_domain(labels: Mapping[str, str]) -> str:
    """Return the NVLink domain of all GPUs of a node; empty if unlabelled."""
    return labels.get(f"{PREFIX}gpu.clique", "")


def profile_counts(amounts: Mapping[str, str]) -> dict[str, int]:
    """Return the slices of each MIG profile in `allocatable`, without replicas."""
    return dict(sorted(_slice_counts(amounts, shared=False)))


def shared_profiles(amounts: Mapping[str, str]) -> list[str]:
    """Return the MIG profiles of which `allocatable` holds replicas marked as shared."""
    return sorted(profile for profile, _ in _slice_counts(amounts, shared=True))


def _slice_counts(amounts: Mapping[str, str], *, shared: bool) -> Iterator[tuple[str, int]]:
    for name, amount in amounts.items():
        there = name.startswith(f"{PREFIX}mig-") and amount.isdigit() and int(amount)
        if there and name.endswith(".shared") is shared:
            yield _profile_name(name.removeprefix(PREFIX).removesuffix(".shared")), int(amount)


def offered_resources(amounts: Mapping[str, str]) -> list[str]:
    """Return the names of whole GPUs, slices and shares that `allocatable` holds."""
    names = (GPU_RESOURCE, f"{GPU_RESOURCE}.shared")
    return sorted(
        name
        for name, n in amounts.items()
        if (name in names or name.startswith(f"{PREFIX}mig-")) and n not in ("", "0")
    )


def mig_resource_name(profile: str) -> str:
    """Return the resource name of a MIG profile."""
    return f"{PREFIX}mig-{profile.replace('+', '.')}"


def model_of_labels(found: GpuLabels, models: Iterable[GpuModelSpec]) -> GpuModelSpec:
    """Return the model of a node's GPUs; raise UnidentifiedGpu if labels do not suffice."""
    memory_mib = 0 if found.slice_profile else found.memory_mib
    return identify_gpu(
        GpuDescription(found.product, memory_mib, found.compute_capability, found.slice_profile, found.is_virtual),
        models,
    )


def _label_number(labels: Mapping[str, str], name: str) -> int | None:
    text = labels.get(f"{PREFIX}{name}", "")
    return int(text) if text.isascii() and text.isdigit() else None
