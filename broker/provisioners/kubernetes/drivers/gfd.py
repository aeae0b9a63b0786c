"""The labels of GPU Feature Discovery on a node. Product names change with mode and version: read, never compared."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from broker.domain.gpu_models import GpuModelSpec
from broker.domain.states import Isolation

PREFIX = "nvidia.com/"
MIG_SUFFIX = re.compile(r"-MIG-(\d+g\.\d+gb(?:[.+-][a-z.]+)?)$", re.ASCII)
SHARED_SUFFIX = re.compile(r"-(SHARED|REPLICA)$")
SAME_WITHIN = 0.12  # of the memory a card is sold with: its driver reports a little less, or GiB for GB


@dataclass(frozen=True, slots=True)
class Discovered:
    """What the labels of one node say about its cards; all of them are of one product."""

    product: str  # without vendor, slice and sharing
    slice_profile: str  # set where every card is cut into this one profile and a slice calls itself a GPU
    count: int
    memory_mib: int  # of what calls itself a GPU
    replicas: int
    strategy: str  # of MIG: none, single, mixed
    sharing: Isolation | None  # how a card is shared by replicas


def read(labels: Mapping[str, str]) -> Discovered | None:
    """Read a node's labels; None for a machine without cards."""
    product = labels.get(f"{PREFIX}gpu.product", "")
    if not product:
        return None
    product = SHARED_SUFFIX.sub("", product)
    found = MIG_SUFFIX.search(product)
    replicas = max(_number(labels, "gpu.replicas"), 1)
    way = labels.get(f"{PREFIX}gpu.sharing-strategy", "none")
    sharing = {"time-slicing": Isolation.NONE, "mps": Isolation.SOFT}.get(way)
    return Discovered(
        product=MIG_SUFFIX.sub("", product).removeprefix("NVIDIA-").removeprefix("Tesla-"),
        slice_profile=found[1].replace(".me", "+me") if found else "",
        count=_number(labels, "gpu.count"),
        memory_mib=_number(labels, "gpu.memory"),
        replicas=replicas,
        strategy=labels.get(f"{PREFIX}mig.strategy", "none"),
        sharing=sharing if replicas > 1 else None,
    )


def profile_counts(amounts: Mapping[str, str]) -> dict[str, int]:
    """Return how many slices of each MIG profile a node's `allocatable` holds."""
    found = {}
    for name, amount in amounts.items():
        if name.startswith(f"{PREFIX}mig-") and amount.isdigit() and int(amount):
            profile = name.removeprefix(f"{PREFIX}mig-").removesuffix(".shared")
            found[re.sub(r"(?<=gb)\.", "+", profile)] = int(amount)
    return dict(sorted(found.items()))


def resource_of(profile: str) -> str:
    """Return the resource by which a MIG profile is asked for."""
    return f"{PREFIX}mig-{profile.replace('+', '.')}"


def model_of(found: Discovered, models: Iterable[GpuModelSpec]) -> GpuModelSpec | None:
    """Find our model of a product by its family and memory; None when it is none we know."""
    return model_like(found.product, found.memory_mib if not found.slice_profile else 0, models)


def model_like(product: str, memory_mib: int, models: Iterable[GpuModelSpec]) -> GpuModelSpec | None:
    """Find the model whose name begins alike and whose memory is nearest, within a small difference.

    Without a figure for the memory the product's own name must tell it, or the family must have one model only.
    """
    family = _family(product)
    alike = [model for model in models if family in {_family(word) for word in (model.name, *model.aliases)}]
    told = re.search(r"(\d+)GB", product)  # of a superchip that is its processor's memory
    memory_gb = memory_mib / 1024 or (int(told[1]) if told else 0)
    if not memory_gb:
        return alike[0] if len(alike) == 1 else None
    near = [(abs(model.memory_gb - memory_gb), model.name, model) for model in alike]
    best = min(near, default=None, key=lambda each: each[:2])
    return best[2] if best and best[0] <= SAME_WITHIN * best[2].memory_gb else None


@lru_cache(maxsize=256)
def _family(product: str) -> str:
    """Return the word or words that name a product line: A100, GH200, RTX PRO 6000."""
    words = re.split(r"[-_ ]+", product.upper().removeprefix("NVIDIA").strip("- "))
    if words[0] == "RTX":
        return " ".join(words[:3])
    return words[0]


def _number(labels: Mapping[str, str], name: str) -> int:
    text = labels.get(f"{PREFIX}{name}", "0")
    return int(text) if text.isascii() and text.isdigit() else 0
