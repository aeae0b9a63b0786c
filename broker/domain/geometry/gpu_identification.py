"""GPU identification: find the listed model of a GPU, or make a new one."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from broker.domain.geometry.gpu_models import NOTIONAL_GRID, GpuModelSpec
from broker.domain.geometry.product_names import ProductName, comparison_key, parse_product_name

MEMORY_TOLERANCE = 0.12  # of a GPU's nominal memory: drivers report a little less, or GiB for GB
MEBIBYTES = 1024
# Memory sizes of GPUs in GB. Drivers report less where error correction takes a sixteenth of the memory.
NOMINAL_SIZES_GB = (2, 3, 4, 5, 6, 8, 10, 11, 12, 16, 20, 24, 32, 40, 48, 64, 72, 80, 94, 96, 128, 141, 144, 180, 192)
LEAST_REPORTED = 0.93  # of the nominal memory
MAX_NAME_LENGTH = 60

NO_PRODUCT = (
    "its labels name no GPU product; install gpu-feature-discovery there (NVIDIA's GPU operator contains it), or set"
    " the node labels nvidia.com/gpu.product and nvidia.com/gpu.memory"
)
NO_MEMORY = (
    "the memory of its {product} is unknown; set the node label nvidia.com/gpu.memory to its MiB (gpu-feature-discovery"
    " writes it), or add the model to the setting GPUBROKER_EXTRA_GPU_MODELS"
)
NO_PROFILE = (
    "{model} has no known MIG profile {profiles}; add it to the setting GPUBROKER_EXTRA_GPU_MODELS (manage.py read_gpus"
    " on the node prints the value)"
)
VIRTUAL = (
    "its {product} is a virtual GPU: the hypervisor shares the card with other virtual machines, so it is not sold as"
    " a whole GPU; pass a whole card through to this virtual machine"
)


# A GPU of which no MIG profile is known.
WHOLE_ONLY = GpuModelSpec(
    name="", aliases=(), pci_ids=(), memory_gb=0, grid=NOTIONAL_GRID, compute=1, profiles=(), verified=False
)


class UnidentifiedGpu(ValueError):
    """A GPU has no model; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class GpuDescription:
    """What labels, a driver or a ResourceSlice say of one GPU."""

    product: str
    memory_mib: int = 0  # 0: unknown
    compute_capability: str = ""  # 9.0
    mig_profile: str = ""  # one of its slices, if the memory is not known: 1g.12gb
    is_virtual: bool = False  # a virtual GPU, whatever its product name


def identify_gpu(seen: GpuDescription, models: Iterable[GpuModelSpec]) -> GpuModelSpec:
    """Return the listed model of a GPU, else a new one, or raise UnidentifiedGpu.

    A new model has the MIG profiles of its product line's model with the same memory, if there is one.
    """
    product = parse_product_name(seen.product)
    if product.is_virtual or seen.is_virtual:
        raise UnidentifiedGpu(VIRTUAL.format(product=product.name or "GPU"))
    if not product.name:
        raise UnidentifiedGpu(NO_PRODUCT)
    known = tuple(models)
    if listed := find_listed_model(seen, known):
        return listed
    memory_gb = nominal_memory_gb(seen.memory_mib) or _memory_in_name(product)
    if not memory_gb and seen.mig_profile:  # the memory that is labelled is the slice's
        raise UnidentifiedGpu(NO_PROFILE.format(model=product.name, profiles=seen.mig_profile))
    if not memory_gb:
        raise UnidentifiedGpu(NO_MEMORY.format(product=product.name))
    alike = [model for model in known if _product_line(model) == _product_line_of(product.name)]
    return _new_model(product, memory_gb, seen.compute_capability, _nearest_memory(alike, memory_gb * MEBIBYTES))


def find_listed_model(seen: GpuDescription, models: Iterable[GpuModelSpec]) -> GpuModelSpec | None:
    """Return the listed model with a GPU's product name and memory, or None."""
    listed = _models_naming(seen.product, models)
    if not seen.memory_mib and seen.mig_profile:
        listed = [model for model in listed if model.mig_profile(seen.mig_profile)]
    return _nearest_memory(listed, seen.memory_mib)


def _models_naming(product: str, models: Iterable[GpuModelSpec]) -> list[GpuModelSpec]:
    key = comparison_key(product)
    return [model for model in models if key in map(comparison_key, (model.name, *model.aliases))]


def memory_of_product_gb(product: str, models: Iterable[GpuModelSpec]) -> int:
    """Return the memory that a product's name determines, in GB; 0 if it does not."""
    sizes = {model.memory_gb for model in _models_naming(product, models)}
    return sizes.pop() if len(sizes) == 1 else _memory_in_name(parse_product_name(product))


def nominal_memory_gb(memory_mib: int) -> int:
    """Return a GPU's nominal memory in GB from its reported MiB."""
    if memory_mib <= 0:
        return 0
    gibibytes = memory_mib / MEBIBYTES
    for size in NOMINAL_SIZES_GB:
        if size * LEAST_REPORTED <= gibibytes <= size:
            return size
    return max(round(gibibytes), 1)


def _nearest_memory(models: list[GpuModelSpec], memory_mib: int) -> GpuModelSpec | None:
    """Return the model with the nearest memory; the only model if memory is unknown."""
    if not memory_mib:
        return models[0] if len(models) == 1 else None
    gibibytes = memory_mib / MEBIBYTES
    best = min(models, key=lambda model: (abs(model.memory_gb - gibibytes), model.name), default=None)
    return best if best and abs(best.memory_gb - gibibytes) <= MEMORY_TOLERANCE * best.memory_gb else None


def _new_model(
    product: ProductName, memory_gb: int, compute_capability: str, alike: GpuModelSpec | None
) -> GpuModelSpec:
    """Make a model for a product that no list names."""
    size = f"{memory_gb}GB"
    words = product.name if size in product.name.upper().split("-") else f"{product.name}-{size}"
    name = words[-MAX_NAME_LENGTH:].strip("-")
    profiles_of = replace(alike, verified=False) if alike else WHOLE_ONLY
    return replace(
        profiles_of,
        name=name,
        label=name.replace("-", " "),
        aliases=(product.name,),
        pci_ids=(),
        memory_gb=memory_gb,
        compute_capability=compute_capability,
    )


def _memory_in_name(product: ProductName) -> int:
    """Return the memory a product name states, in GB; 0 if it states none."""
    found = re.search(r"(?:^|-)(\d{1,3})GB(?:-|$)", product.name, re.ASCII | re.IGNORECASE)
    return int(found[1]) if found else 0


def _product_line(model: GpuModelSpec) -> str:
    return _product_line_of(model.aliases[0] if model.aliases else model.name)


def _product_line_of(product: str) -> str:
    """Return the words that name a product line: A100, GH200, RTX PRO 6000."""
    words = parse_product_name(product).name.upper().split("-")
    return "-".join(words[:3]) if words[0] == "RTX" else words[0]
