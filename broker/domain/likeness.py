"""Which model a card is one of, by what its driver calls it and how much memory it has."""

import re
from collections.abc import Iterable
from functools import lru_cache

from broker.domain.gpu_models import GpuModelSpec

SAME_WITHIN = 0.12  # of the memory a card is sold with: its driver reports a little less, or GiB for GB


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
