"""The labels of GPU Feature Discovery on a node. Product names change with mode and version: read, never compared."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from broker.domain.gpu_models import GpuModelSpec
from broker.domain.likeness import model_like
from broker.domain.states import Isolation

PREFIX = "nvidia.com/"
MIG_SUFFIX = re.compile(r"-MIG-(\d+g\.\d+gb(?:[.+-][a-z.]+)?)$", re.ASCII)
SHARED_SUFFIX = re.compile(r"-(SHARED|REPLICA)$")
SHARED_AS = {"time-slicing": Isolation.NONE, "mps": Isolation.SOFT}
SLICE_LABEL = re.compile(
    r"nvidia\.com/(mig-\d+g\.\d+gb[a-z.+-]*?)\.(?:count|replicas|sharing-strategy|product)", re.ASCII
)


@dataclass(frozen=True, slots=True)
class Discovered:
    """What the labels of one node say about its cards; all of them are of one product."""

    product: str  # without vendor, slice and sharing
    slice_profile: str  # set where every card is cut into this one profile and a slice calls itself a GPU
    count: int
    memory_mib: int  # of what calls itself a GPU
    replicas: int
    strategy: str  # of MIG: none, single, mixed
    shared: bool  # what calls itself a GPU is a replica
    sharing: Isolation | None  # how; None where it is not shared, or in no way that we know
    shared_slices: tuple[str, ...]  # MIG profiles whose slices have replicas
    slices: Mapping[str, int]  # how many slices of each MIG profile there are


def read(labels: Mapping[str, str]) -> Discovered | None:
    """Read a node's labels; None for a machine without cards."""
    product = labels.get(f"{PREFIX}gpu.product", "")
    if not product:
        return None
    shared = _is_shared(labels, "gpu")
    product = SHARED_SUFFIX.sub("", product)
    found = MIG_SUFFIX.search(product)
    replicas = max(_number(labels, "gpu.replicas"), 1)
    way = labels.get(f"{PREFIX}gpu.sharing-strategy", "none")
    cut = [name for label in labels if (name := _slice_of(label))]
    return Discovered(
        product=MIG_SUFFIX.sub("", product).removeprefix("NVIDIA-").removeprefix("Tesla-"),
        slice_profile=found[1].replace(".me", "+me") if found else "",
        count=_number(labels, "gpu.count"),
        memory_mib=_number(labels, "gpu.memory"),
        replicas=replicas,
        strategy=labels.get(f"{PREFIX}mig.strategy", "none"),
        shared=shared,
        sharing=SHARED_AS.get(way) if replicas > 1 else None,
        shared_slices=tuple(sorted(_profile(name) for name in set(cut) if _is_shared(labels, name))),
        slices={
            _profile(name): _number(labels, f"{name}.count")
            for name in cut
            if f"{PREFIX}{name}.count" in labels
        },
    )


def _is_shared(labels: Mapping[str, str], what: str) -> bool:
    """Tell whether any label of a card or a slice speaks of replicas: one is enough, for they may be of two ages."""
    way = labels.get(f"{PREFIX}{what}.sharing-strategy", "none")
    named = SHARED_SUFFIX.search(labels.get(f"{PREFIX}{what}.product", ""))
    return _number(labels, f"{what}.replicas") > 1 or way not in ("none", "") or named is not None


def _slice_of(label: str) -> str:
    """Return which MIG resource a label tells of, such as mig-1g.10gb; empty where it tells of none."""
    found = SLICE_LABEL.fullmatch(label)
    return found[1] if found else ""


def _profile(resource: str) -> str:
    return re.sub(r"(?<=gb)\.", "+", resource.removeprefix("mig-"))


def fabric(labels: Mapping[str, str]) -> str:
    """Return the NVLink domain that all cards of a node are in; empty where its labels name none."""
    return labels.get(f"{PREFIX}gpu.clique", "")


def profile_counts(amounts: Mapping[str, str]) -> dict[str, int]:
    """Return how many slices of each MIG profile a node's `allocatable` holds, replicas left out."""
    return dict(sorted(_slices(amounts, shared=False)))


def shared_profiles(amounts: Mapping[str, str]) -> list[str]:
    """Name the MIG profiles of which a node's `allocatable` holds replicas that are called so."""
    return sorted(profile for profile, _ in _slices(amounts, shared=True))


def _slices(amounts: Mapping[str, str], *, shared: bool) -> Iterator[tuple[str, int]]:
    for name, amount in amounts.items():
        there = name.startswith(f"{PREFIX}mig-") and amount.isdigit() and int(amount)
        if there and name.endswith(".shared") is shared:
            yield _profile(name.removeprefix(PREFIX).removesuffix(".shared")), int(amount)


def resource_of(profile: str) -> str:
    """Return the resource by which a MIG profile is asked for."""
    return f"{PREFIX}mig-{profile.replace('+', '.')}"


def model_of(found: Discovered, models: Iterable[GpuModelSpec]) -> GpuModelSpec | None:
    """Find our model of a product by its family and memory; None when it is none we know."""
    return model_like(found.product, found.memory_mib if not found.slice_profile else 0, models)


def _number(labels: Mapping[str, str], name: str) -> int:
    text = labels.get(f"{PREFIX}{name}", "0")
    return int(text) if text.isascii() and text.isdigit() else 0
