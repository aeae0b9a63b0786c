"""Devices as NVIDIA's DRA driver publishes them for GPUs with dynamic MIG.

The form is the driver's at commit 95932046 (v0.5.0-dev): see tests/vendors/resourceslices.jsonl. Dynamic MIG devices
have no UUID and state their memory slices as counters only. Static ones, as version 25.8 writes them, have both.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.controlplane.api import Api, Object

DRIVER = "gpu.nvidia.com"
VERSION = "resource.k8s.io/v1"
MEMORY_SLICES = 8
PCI_BUS_ID, NUMA_NODE = "resource.kubernetes.io/pciBusID", "resource.kubernetes.io/numaNode"
ENGINES = ("copyEngines", "decoders", "encoders", "jpegEngines", "memory", "multiprocessors", "ofaEngines")
COUNTERS = ("copy-engines", "decoders", "encoders", "jpeg-engines", "memory", "multiprocessors", "ofa-engines")


@dataclass(frozen=True)
class Profile:
    """A MIG profile: NVML number, amounts of `ENGINES`, memory slices and possible starts."""

    name: str
    number: int
    amounts: tuple[str, ...]
    memory: int
    starts: tuple[int, ...]


# Amounts of an H100 80GB, from `nvidia-smi mig -lgip` and the driver's slices.
H100_PROFILES = (
    Profile("1g.10gb", 19, ("1", "1", "0", "1", "9984Mi", "16", "0"), 1, (0, 1, 2, 3, 4, 5, 6)),
    Profile("1g.20gb", 15, ("1", "1", "0", "1", "20096Mi", "26", "0"), 2, (0, 2, 4, 6)),
    Profile("2g.20gb", 14, ("2", "2", "0", "2", "20096Mi", "32", "0"), 2, (0, 2, 4)),
    Profile("3g.40gb", 9, ("3", "3", "0", "3", "40320Mi", "60", "0"), 4, (0, 4)),
    Profile("4g.40gb", 5, ("4", "4", "0", "4", "40320Mi", "64", "0"), 4, (0,)),
    Profile("7g.80gb", 0, ("8", "7", "0", "7", "81152Mi", "132", "1"), 8, (0,)),
)
WHOLE = ("8", "7", "0", "7", "81152Mi", "132", "1")


def uuid(node: str, gpu: int) -> str:
    """Return a GPU's uuid: the same for the same GPU of the same node."""
    digest = hashlib.sha256(f"{node}/{gpu}".encode()).hexdigest()
    return f"GPU-{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


def _values(names: Sequence[str], amounts: Sequence[str]) -> Object:
    return {name: {"value": amount} for name, amount in zip(names, amounts, strict=True)}


def _memory_counters(slices: range) -> Object:
    return {f"memory-slice-{n}": {"value": "1"} for n in slices}


def _consumes(gpu: int, slices: range, amounts: Sequence[str]) -> list[Object]:
    """Take engines and memory slices of a GPU; a whole GPU takes everything."""
    return [
        {
            "counterSet": f"gpu-{gpu}-counter-set",
            "counters": {**_values(COUNTERS, amounts), **_memory_counters(slices)},
        }
    ]


def _attributes(gpu: int, **more: str) -> Object:
    text = {
        "addressingMode": "HMM",
        "architecture": "Hopper",
        "brand": "Nvidia",
        "productName": "NVIDIA H100 80GB HBM3",
        "resource.kubernetes.io/pciBusID": f"0000:{0x64 + gpu * 0x11:02x}:00.0",
        "resource.kubernetes.io/pcieRoot": f"pci0000:{0x55 + gpu * 0x11:02x}",
        **more,
    }
    return {
        **{name: {"string": value} for name, value in text.items()},
        "cudaComputeCapability": {"version": "9.0.0"},
        "cudaDriverVersion": {"version": "13.0.0"},
        "driverVersion": {"version": "580.105.8"},
        "resource.kubernetes.io/numaNode": {"int": gpu},
    }


def _attributes_of_25_8(gpu: int, **more: str) -> Object:
    """Return the device attributes of version 25.8 of the driver."""
    newer = _attributes(gpu, **more)
    kept = {name: value for name, value in newer.items() if name not in (PCI_BUS_ID, NUMA_NODE, "addressingMode")}
    return kept | {"pcieBusID": newer[PCI_BUS_ID]}


def whole(node: str, gpu: int) -> Object:
    """Return a GPU as a device."""
    return {
        "name": f"gpu-{gpu}",
        "attributes": _attributes(gpu, type="gpu", uuid=uuid(node, gpu)),
        "capacity": _values(ENGINES, WHOLE),
        "consumesCounters": _consumes(gpu, range(MEMORY_SLICES), WHOLE),
    }


def device_name(gpu: int, profile: Profile, start: int) -> str:
    """Return the driver's canonical name of a MIG device."""
    return f"gpu-{gpu}-mig-{profile.name.replace('.', '')}-{profile.number}-{start}"


def cut(node: str, gpu: int, profiles: Sequence[Profile]) -> Iterator[Object]:
    """Yield every MIG device that a GPU could become."""
    for profile in profiles:
        for start in profile.starts:
            yield {
                "name": device_name(gpu, profile, start),
                "attributes": _attributes(gpu, type="mig", profile=profile.name, parentUUID=uuid(node, gpu)),
                "capacity": _values(ENGINES, profile.amounts),
                "consumesCounters": _consumes(gpu, range(start, start + profile.memory), profile.amounts),
            }


def static(node: str, gpu: int, placements: Sequence[tuple[Profile, int]]) -> list[Object]:
    """Return a GPU's static MIG devices as driver 25.8 writes them."""
    made = []
    for profile, start in placements:
        digest = uuid(node, gpu * 100 + start).removeprefix("GPU")
        slices = {f"memorySlice{n}": {"value": "1"} for n in range(start, start + profile.memory)}
        attributes = {"type": "mig", "profile": profile.name, "parentUUID": uuid(node, gpu), "uuid": f"MIG{digest}"}
        made.append(
            {
                "name": f"gpu-{gpu}-mig-{profile.number}-{start}-{profile.memory}",
                "attributes": _attributes_of_25_8(gpu, **attributes),
                "capacity": {**_values(ENGINES, profile.amounts), **slices},
            }
        )
    return made


def published(node: str, *, gpus: int = 1, profiles: Sequence[Profile] = H100_PROFILES) -> list[Object]:
    """Return a node's ResourceSlices: one with the counters, then one for each GPU."""
    counters = {**_values(COUNTERS, WHOLE), **_memory_counters(range(MEMORY_SLICES))}
    sets = [{"name": f"gpu-{gpu}-counter-set", "counters": counters} for gpu in range(gpus)]
    contents: list[Object] = [{"sharedCounters": sets[n : n + 8]} for n in range(0, gpus, 8)]
    contents += [{"devices": [whole(node, gpu), *cut(node, gpu, profiles)]} for gpu in range(gpus)]
    return slices_of(node, contents)


def slices_of(node: str, contents: Sequence[Object]) -> list[Object]:
    """Return the slices of one pool with these contents."""
    return [
        {
            "apiVersion": VERSION,
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-{DRIVER}-{number:05d}"},
            "spec": {
                "driver": DRIVER,
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": len(contents)},
                **content,
            },
        }
        for number, content in enumerate(contents)
    ]


def device_class(name: str, selector: str, *, extended: str = "") -> Object:
    """Return a DeviceClass with its extended resource."""
    expression = f"device.driver == '{DRIVER}' && {selector}"
    spec: Object = {"selectors": [{"cel": {"expression": expression}}]}
    if extended:
        spec["extendedResourceName"] = extended
    return {"apiVersion": VERSION, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


GPU_CLASS = device_class("gpu.nvidia.com", f"device.attributes['{DRIVER}'].type == 'gpu'")
MIG_CLASS = device_class("mig.nvidia.com", f"device.attributes['{DRIVER}'].type == 'mig'")


def publish(api: Api, node: str, *, gpus: int = 1, profiles: Sequence[Profile] = H100_PROFILES) -> None:
    """Publish a node's GPUs and the driver's own two classes."""
    for manifest in (GPU_CLASS, MIG_CLASS, *published(node, gpus=gpus, profiles=profiles)):
        api.apply(manifest)


def publish_static(api: Api, node: str, placements: Sequence[tuple[Profile, int]]) -> None:
    """Publish the slices of a GPU without the GPU, as on Ampere."""
    for manifest in (GPU_CLASS, MIG_CLASS, *slices_of(node, [{"devices": static(node, 0, placements)}])):
        api.apply(manifest)


def withdraw(api: Api, node: str) -> None:
    """Delete the published devices of a node."""
    api.delete(f"/apis/{VERSION}/resourceslices", fieldSelector=f"spec.nodeName={node}")
