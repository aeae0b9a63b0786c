"""Devices of NVIDIA's DRA driver: their attributes, memory slices, health and pools.

After the driver's sources (kubernetes-sigs/dra-driver-nvidia-gpu): static MIG devices have a UUID and state their
memory slices as capacity; dynamic ones have no UUID and state them as consumed counters only.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from broker.domain.geometry.gpu_identification import GpuDescription
from broker.provisioners.kubernetes.client.objects import Device, ResourceSlice
from broker.provisioners.kubernetes.client.quantities import parse_memory_mib

DRA_DRIVER_NAME = "gpu.nvidia.com"
MEMORY_SLICE = re.compile(rf"(?:{re.escape(DRA_DRIVER_NAME)}/)?(?:memorySlice|memory-slice-)(\d{{1,3}})", re.ASCII)
NO_UNIT = -1
REFUSING_EFFECTS = ("NoSchedule", "NoExecute")  # the effect None only informs
# NVIDIA's driver sets them with NoSchedule after a fault of the GPU, so pods on it are not evicted.
GPU_LOST = f"{DRA_DRIVER_NAME}/gpu-lost"
FATAL_TAINTS = (f"{DRA_DRIVER_NAME}/xid", GPU_LOST)


@dataclass(frozen=True, slots=True)
class PublishedPool:
    """The newest devices of one node; incomplete while its driver is still writing them."""

    node: str
    devices: tuple[Device, ...]
    complete: bool


def newest_pools(slices: Iterable[ResourceSlice]) -> list[PublishedPool]:
    """Return the devices of each node's pool, from slices of its newest generation."""
    by_pool: dict[tuple[str, str], list[ResourceSlice]] = defaultdict(list)
    for each in slices:
        if each.spec.driver == DRA_DRIVER_NAME and each.spec.node_name:
            by_pool[each.spec.node_name, each.spec.pool.name].append(each)
    found: dict[str, PublishedPool] = {}
    for (node, _), all_of_it in sorted(by_pool.items(), key=lambda item: item[0]):
        newest = max(each.spec.pool.generation for each in all_of_it)
        current = [each for each in all_of_it if each.spec.pool.generation == newest]
        complete = len(current) >= max(each.spec.pool.resource_slice_count for each in current)
        devices = tuple(device for each in current for device in each.spec.devices)
        before = found.get(node, PublishedPool(node, (), complete=True))
        found[node] = PublishedPool(node, (*before.devices, *devices), before.complete and complete)
    return [found[node] for node in sorted(found)]


def whole_gpus(devices: Sequence[Device]) -> list[Device]:
    """Return the devices that are whole GPUs, by name."""
    return sorted((each for each in devices if attribute_text(each, "type") == "gpu"), key=lambda each: each.name)


def slices_by_gpu(devices: Sequence[Device]) -> dict[str, list[Device]]:
    """Return the possible slices of each GPU, by its UUID."""
    found: dict[str, list[Device]] = defaultdict(list)
    for device in devices:
        if of := attribute_text(device, "parentUUID"):
            found[of].append(device)
    return found


def is_static(device: Device) -> bool:
    """Tell whether a slice exists already; a possible one has no UUID."""
    return bool(attribute_text(device, "uuid"))


def memory_slices(device: Device) -> set[int]:
    """Return the memory slices that a device occupies, from its capacity or its counters."""
    counted = (name for each in device.consumes_counters for name in each.counters)
    return {_memory_slice_number(name) for name in (*device.capacity, *counted)} - {NO_UNIT}


def states_memory_slices(device: Device) -> bool:
    """Tell whether a claim can select a device by its memory slices."""
    return any(_memory_slice_number(name) != NO_UNIT for name in device.capacity)


@lru_cache(maxsize=1024)
def _memory_slice_number(name: str) -> int:
    found = MEMORY_SLICE.fullmatch(name)
    return int(found[1]) if found else NO_UNIT


def refusing_taint(device: Device) -> str:
    """Return the taint that keeps claims off a device, such as xid=79, or empty."""
    for taint in device.taints:
        if taint.effect in REFUSING_EFFECTS:
            return f"{taint.key.rpartition('/')[2]}={taint.value}".rstrip("=")
    return ""


def has_fatal_taint(device: Device) -> bool:
    """Return whether a taint says that nothing can run on a device."""
    return any(taint.key in FATAL_TAINTS and taint.effect in REFUSING_EFFECTS for taint in device.taints)


def is_gpu_lost(device: Device) -> bool:
    """Return whether a taint says that the GPU of a device is gone."""
    return any(taint.key == GPU_LOST and taint.effect in REFUSING_EFFECTS for taint in device.taints)


def attribute_text(device: Device, name: str) -> str:
    """Return an attribute's text; empty if it has none."""
    found = device.attributes.get(name) or device.attributes.get(f"{DRA_DRIVER_NAME}/{name}")
    return (found.string or found.version or "") if found else ""


def describe_device(device: Device) -> GpuDescription:
    """Return a device's product, memory and compute capability; of a slice, its GPU's product."""
    capability = ".".join(attribute_text(device, "cudaComputeCapability").split(".")[:2])
    product = attribute_text(device, "productName")
    if profile := attribute_text(device, "profile"):
        return GpuDescription(product, 0, capability, profile)
    amount = device.capacity.get("memory") or device.capacity.get(f"{DRA_DRIVER_NAME}/memory")
    return GpuDescription(product, parse_memory_mib(amount.value) if amount else 0, capability)
