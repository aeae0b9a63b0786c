"""Read and write mig-parted configs: legal layouts of a node, and wanted ones."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from broker.domain.geometry.profiles import WHOLE_GPU
from broker.domain.repartition.gpu_layouts import GpuLayout

NAME_PREFIX, ALIAS_SUFFIX = "gpub-", "-again"


def max_slices_per_gpu(document: Mapping[str, Any]) -> dict[str, int]:
    """Return the profiles in a node's configs, with the most per GPU.

    Raises ValueError for any other document: a plan based on guesses would fail on the node.
    """
    configs = document.get("mig-configs")
    if not isinstance(configs, Mapping):
        raise ValueError("it has no mig-configs; mig-manager did not write it")
    most: dict[str, int] = {}
    for name, entries in configs.items():
        for entry in entries if isinstance(entries, list) else [entries]:
            devices = entry.get("mig-devices") if isinstance(entry, Mapping) else None
            for profile, count in (devices or {}).items():
                if not isinstance(count, int) or count < 0:
                    raise ValueError(f"config {name} has an invalid number of {profile}: {count!r}")
                most[str(profile)] = max(most.get(str(profile), 0), count)
    return {profile: count for profile, count in most.items() if count}


def common_limits(published: Iterable[Mapping[str, int] | None]) -> dict[str, int] | None:
    """Return limits that hold for all of some nodes; None: no limits."""
    limits = [each for each in published if each is not None]
    if not limits:
        return None
    return {name: min(each.get(name, 0) for each in limits) for name in limits[0]}


def mig_config(layouts: Mapping[int, GpuLayout]) -> list[dict[str, Any]]:
    """Return a node's layout as a config, with one entry per distinct GPU layout."""
    return [
        {"devices": sorted(at for at, each in layouts.items() if each == layout), "mig-enabled": False}
        if layout.is_whole_gpu
        else {
            "devices": sorted(at for at, each in layouts.items() if each == layout),
            "mig-enabled": True,
            "mig-devices": dict(layout.counts),
        }
        for layout in sorted(set(layouts.values()))
    ]


def layout_name(layouts: Mapping[int, GpuLayout]) -> str:
    """Return a layout's name, derived from its content alone."""
    text = json.dumps(mig_config(layouts), sort_keys=True)
    return NAME_PREFIX + hashlib.sha256(text.encode()).hexdigest()[:16]


def layout_alias(name: str) -> str:
    """Return the second name of a layout: nodes react only to changed names."""
    return name + ALIAS_SUFFIX


def slices_offered(layouts: Iterable[GpuLayout]) -> dict[str, int]:
    """Return the slices a node with these layouts offers, whole GPUs included."""
    slots: dict[str, int] = {}
    for layout in layouts:
        for profile, count in layout.counts:
            slots[profile] = slots.get(profile, 0) + count
    return slots


def profile_of_resource(resource: str) -> str | None:
    """Return the profile of a resource name; None if it is not one."""
    if resource == "nvidia.com/gpu":
        return WHOLE_GPU
    head, _, rest = resource.partition("nvidia.com/mig-")
    shape, dot, attributes = rest.partition("gb")
    if head or not dot:
        return None
    return shape + "gb" + attributes.replace(".", "+", 1)
