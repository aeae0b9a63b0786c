"""Devices that a DRA driver publishes for a node's GPUs."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.controlplane.api import Api, Object

DRIVER = "gpu.nvidia.com"
VERSION = "resource.k8s.io/v1"
MEMORY_SLICES, MULTIPROCESSORS = 8, 132


@dataclass(frozen=True)
class Profile:
    """A MIG profile: its number in NVML, its slices, and where it may begin."""

    name: str
    number: int
    compute: int
    memory: int
    starts: tuple[int, ...]


H100_PROFILES = (
    Profile("1g.10gb", 19, 1, 1, (0, 1, 2, 3, 4, 5, 6)),
    Profile("1g.20gb", 15, 1, 2, (0, 2, 4, 6)),
    Profile("2g.20gb", 14, 2, 2, (0, 2, 4)),
    Profile("3g.40gb", 9, 3, 4, (0, 4)),
    Profile("4g.40gb", 5, 4, 4, (0,)),
    Profile("7g.80gb", 0, 7, 8, (0,)),
)


def uuid(node: str, gpu: int) -> str:
    """Return a GPU's uuid: the same for the same GPU of the same node."""
    digest = hashlib.sha256(f"{node}/{gpu}".encode()).hexdigest()
    return f"GPU-{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


def _consumes(gpu: int, slices: range, compute: int) -> list[Object]:
    """Take memory slices and multiprocessors of a GPU; a whole GPU takes everything."""
    multiprocessors = MULTIPROCESSORS if compute >= 7 else 16 * compute
    counters = {f"memory-slice-{n}": {"value": "1"} for n in slices}
    counters["multiprocessors"] = {"value": str(multiprocessors)}
    return [{"counterSet": f"gpu-{gpu}-counter-set", "counters": counters}]


def _attributes(node: str, gpu: int, **more: str) -> Object:
    text = {"productName": "NVIDIA H100 80GB HBM3", "brand": "Nvidia", "architecture": "Hopper", **more}
    return {
        **{name: {"string": value} for name, value in text.items()},
        "cudaComputeCapability": {"version": "9.0.0"},
        "driverVersion": {"version": "580.95.5"},
    }


def whole(node: str, gpu: int) -> Object:
    """Return a GPU as a device."""
    return {
        "name": f"gpu-{gpu}",
        "attributes": _attributes(node, gpu, type="gpu", uuid=uuid(node, gpu)),
        "capacity": {"memory": {"value": "81559Mi"}},
        "consumesCounters": _consumes(gpu, range(MEMORY_SLICES), 7),
    }


def cut(node: str, gpu: int, profiles: Sequence[Profile]) -> Iterator[Object]:
    """Yield every MIG device that a GPU could become."""
    for profile in profiles:
        for start in profile.starts:
            slices = range(start, start + profile.memory)
            yield {
                "name": f"gpu-{gpu}-mig-{profile.number}-{start}-{profile.memory}",
                "attributes": _attributes(node, gpu, type="mig", profile=profile.name, parentUUID=uuid(node, gpu)),
                "capacity": {
                    "memory": {"value": f"{profile.memory * 9728}Mi"},
                    "multiprocessors": {"value": str(16 * profile.compute)},
                    **{f"memorySlice{n}": {"value": "1"} for n in slices},
                },
                "consumesCounters": _consumes(gpu, slices, profile.compute),
            }


def published(node: str, *, gpus: int = 1, profiles: Sequence[Profile] = H100_PROFILES) -> list[Object]:
    """Return a node's ResourceSlices, with counters in one of their own."""
    devices = [device for gpu in range(gpus) for device in (whole(node, gpu), *cut(node, gpu, profiles))]
    counters = {f"memory-slice-{n}": {"value": "1"} for n in range(MEMORY_SLICES)}
    counters["multiprocessors"] = {"value": str(MULTIPROCESSORS)}
    sets = [{"name": f"gpu-{gpu}-counter-set", "counters": counters} for gpu in range(gpus)]
    contents: list[Object] = [{"sharedCounters": sets[n : n + 8]} for n in range(0, gpus, 8)]
    contents += [{"devices": devices[n : n + 24]} for n in range(0, len(devices), 24)]
    return [
        {
            "apiVersion": VERSION,
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-{DRIVER}-{number}"},
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


def withdraw(api: Api, node: str) -> None:
    """Delete the published devices of a node."""
    api.delete(f"/apis/{VERSION}/resourceslices", fieldSelector=f"spec.nodeName={node}")
