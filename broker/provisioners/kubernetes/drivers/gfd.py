"""Labels of GPU Feature Discovery on a node.

Product names change with mode and version, so they are parsed and never compared as they are.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from broker.domain.geometry.gpu_matching import match_gpu_model
from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.lifecycle.states import Isolation

PREFIX = "nvidia.com/"
MIG_SUFFIX = re.compile(r"-MIG-(\d+g\.\d+gb(?:[.+-][a-z.]+)?)$", re.ASCII)
SHARED_SUFFIX = re.compile(r"-(SHARED|REPLICA)$")
SHARED_AS = {"time-slicing": Isolation.NONE, "mps": Isolation.SOFT}
SLICE_LABEL = re.compile(
    r"nvidia\.com/(mig-\d+g\.\d+gb[a-z.+-]*?)\.(?:count|replicas|sharing-strategy|product)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class GpuLabels:
    """What a node's labels say about its GPUs, which are all one product."""

    product: str  # without vendor, slice and sharing suffixes
    slice_profile: str  # set where all GPUs are cut into this one profile and a slice is labelled as a GPU
    count: int
    memory_mib: int  # of what is labelled as a GPU
    replicas: int
    strategy: str  # MIG strategy: none, single or mixed
    shared: bool  # what is labelled as a GPU is a replica
    sharing: Isolation | None  # how it is shared; None: not shared, or in an unknown way
    shared_slices: tuple[str, ...]  # MIG profiles whose slices have replicas
    slices: Mapping[str, int]  # number of slices of each MIG profile


def read_gpu_labels(labels: Mapping[str, str]) -> GpuLabels | None:
    """Read a node's labels; None for a node without GPUs."""
    product = labels.get(f"{PREFIX}gpu.product", "")
    if not product:
        return None
    shared = _is_shared(labels, "gpu")
    product = SHARED_SUFFIX.sub("", product)
    found = MIG_SUFFIX.search(product)
    replicas = max(_label_number(labels, "gpu.replicas"), 1)
    strategy = labels.get(f"{PREFIX}gpu.sharing-strategy", "none")
    cut = [name for label in labels if (name := _mig_resource_of(label))]
    return GpuLabels(
        product=MIG_SUFFIX.sub("", product).removeprefix("NVIDIA-").removeprefix("Tesla-"),
        slice_profile=found[1].replace(".me", "+me") if found else "",
        count=_label_number(labels, "gpu.count"),
        memory_mib=_label_number(labels, "gpu.memory"),
        replicas=replicas,
        strategy=labels.get(f"{PREFIX}mig.strategy", "none"),
        shared=shared,
        sharing=SHARED_AS.get(strategy) if replicas > 1 else None,
        shared_slices=tuple(sorted(_profile_name(name) for name in set(cut) if _is_shared(labels, name))),
        slices={
            _profile_name(name): _label_number(labels, f"{name}.count")
            for name in cut
            if f"{PREFIX}{name}.count" in labels
        },
    )


def _is_shared(labels: Mapping[str, str], what: str) -> bool:
    """Tell whether any label of a GPU or slice mentions replicas.

    One is enough, for labels may be of different ages.
    """
    strategy = labels.get(f"{PREFIX}{what}.sharing-strategy", "none")
    named = SHARED_SUFFIX.search(labels.get(f"{PREFIX}{what}.product", ""))
    return _label_number(labels, f"{what}.replicas") > 1 or strategy not in ("none", "") or named is not None


def _mig_resource_of(label: str) -> str:
    """Return the MIG resource a label is about, such as mig-1g.10gb; else empty."""
    found = SLICE_LABEL.fullmatch(label)
    return found[1] if found else ""


def _profile_name(resource: str) -> str:
    return re.sub(r"(?<=gb)\.", "+", resource.removeprefix("mig-"))


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


def mig_resource_name(profile: str) -> str:
    """Return the resource name of a MIG profile."""
    return f"{PREFIX}mig-{profile.replace('+', '.')}"


def model_of_labels(found: GpuLabels, models: Iterable[GpuModelSpec]) -> GpuModelSpec | None:
    """Return our model of a product by family and memory; None if unknown."""
    return match_gpu_model(found.product, found.memory_mib if not found.slice_profile else 0, models)


def _label_number(labels: Mapping[str, str], name: str) -> int:
    text = labels.get(f"{PREFIX}{name}", "0")
    return int(text) if text.isascii() and text.isdigit() else 0
