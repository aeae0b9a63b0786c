"""GPU matching: find the model of a GPU by product name and memory."""

import re
from collections.abc import Iterable
from functools import lru_cache

from broker.domain.geometry.gpu_models import GpuModelSpec

MEMORY_TOLERANCE = 0.12  # of a GPU's nominal memory: drivers report a little less, or GiB for GB


def match_gpu_model(product: str, memory_mib: int, models: Iterable[GpuModelSpec]) -> GpuModelSpec | None:
    """Find the model of the same family with the nearest memory.

    The difference must be small. Without a memory size the product's own name must state it, or the
    family must have one model only.
    """
    family = _product_family(product)
    alike = [model for model in models if family in {_product_family(word) for word in (model.name, *model.aliases)}]
    memory = re.search(r"(\d+)GB", product)  # on a superchip this is the processor's memory
    memory_gb = memory_mib / 1024 or (int(memory[1]) if memory else 0)
    if not memory_gb:
        return alike[0] if len(alike) == 1 else None
    near = [(abs(model.memory_gb - memory_gb), model.name, model) for model in alike]
    best = min(near, default=None, key=lambda each: each[:2])
    return best[2] if best and best[0] <= MEMORY_TOLERANCE * best[2].memory_gb else None


@lru_cache(maxsize=256)
def _product_family(product: str) -> str:
    """Return the words that name a product line: A100, GH200, RTX PRO 6000."""
    words = re.split(r"[-_ ]+", product.upper().removeprefix("NVIDIA").strip("- "))
    if words[0] == "RTX":
        return " ".join(words[:3])
    return words[0]
