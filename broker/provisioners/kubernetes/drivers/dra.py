"""Slices as devices of NVIDIA's DRA driver.

They are requested by ResourceClaims that name GPU and placement, or as extended resources.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from broker.domain.geometry.gpu_matching import match_gpu_model
from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.published_profiles import missing_from_model
from broker.domain.lifecycle.states import Isolation
from broker.provisioners.kubernetes import labels, names
from broker.provisioners.kubernetes.client.objects import ClusterNode, Device, ResourceClaim, ResourceSlice
from broker.provisioners.kubernetes.drivers import gfd
from broker.provisioners.kubernetes.drivers.base import PodSliceRequest, UnsupportedSpec, mig_profile_names
from broker.provisioners.kubernetes.drivers.discovered_inventory import (
    DiscoveredGpu,
    DiscoveredNode,
    DiscoveredSlice,
    with_nvlink_domain,
)
from broker.provisioners.kubernetes.render.spec import LeaseSpec, Manifest, ProjectCeilings, SliceSpec

DRA_DRIVER_NAME = "gpu.nvidia.com"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"  # GPUs with the same root are attached to one processor
GPU_DEVICE_CLASS = "gpu.nvidia.com"  # NVIDIA's own class, which also serves nvidia.com/gpu
MEMORY_SLICE = re.compile(rf"(?:{re.escape(DRA_DRIVER_NAME)}/)?memorySlice(\d{{1,3}})", re.ASCII)
NO_UNIT = -1
# Characters that are safe inside quotes of a CEL expression.
SAFE_TEXT = re.compile(r"[A-Za-z0-9./+_-]{1,80}", re.ASCII)


@dataclass(frozen=True, slots=True)
class DraDriver:
    """Requests devices from the scheduler, which allocates what nodes publish."""

    models: tuple[GpuModelSpec, ...]
    extended: bool = False  # pods use plain limits, and the scheduler writes the claim
    name: str = "dra"
    schedulers: tuple[str, ...] = ()
    uncut: ClassVar[frozenset[Isolation]] = frozenset({Isolation.DEVICE, Isolation.HARDWARE})

    @property
    def uses_resource_claims(self) -> bool:
        return not self.extended

    def slice_request(self, lease: LeaseSpec, node: str) -> PodSliceRequest:
        places = lease.slices_on(node)
        _check_isolation(lease.offering.isolation)
        if not self.extended:
            return PodSliceRequest(
                claim=names.resource_claim_name(lease.lease_id, lease.generation, lease.nodes.index(node))
            )
        whole = lease.offering.isolation is Isolation.DEVICE
        requested = Counter(f"{gfd.PREFIX}gpu" if whole else gfd.mig_resource_name(each.profile) for each in places)
        return PodSliceRequest(limits=dict(sorted(requested.items())))

    def extra_objects(self, lease: LeaseSpec) -> list[Manifest]:
        if self.extended:
            return []
        return [_resource_claim(lease, rank) for rank in range(len(lease.nodes))]

    def quota_limits(self, most: ProjectCeilings) -> dict[str, str]:
        sold = {device_class_of(name): most.slices for name in mig_profile_names(self.models)}
        counted = {**sold, GPU_DEVICE_CLASS: most.gpus}
        lines = {f"{name}.deviceclass.resource.k8s.io/devices": str(n) for name, n in counted.items()}
        return {**lines, "count/resourceclaims.resource.k8s.io": str(most.pods)}

    def cluster_objects(self) -> list[Manifest]:
        return [_device_class(profile) for profile in mig_profile_names(self.models)]

    def inventory(
        self, nodes: Sequence[ClusterNode], slices: Sequence[ResourceSlice], classes: Collection[str] | None = None
    ) -> list[DiscoveredNode]:
        published: dict[str, list[Device]] = defaultdict(list)
        for each in slices:
            if each.spec.driver == DRA_DRIVER_NAME:
                published[each.spec.node_name] += each.spec.devices
        labels = {node.metadata.name: node.metadata.labels for node in nodes}
        return [
            with_nvlink_domain(self._node(name, published[name], classes), gfd.nvlink_domain(labels[name]))
            for name in sorted(labels)
            if name in published
        ]

    def _node(self, name: str, devices: list[Device], classes: Collection[str] | None) -> DiscoveredNode:
        gpus, problems, slices = [], [], _slices_by_gpu(devices)
        for index, device in enumerate(_whole_gpus(devices)):
            product = attribute_text(device, "productName").removeprefix("NVIDIA ").replace(" ", "-")
            model = match_gpu_model(product, _mebibytes(device), self.models)
            if model is None:
                problems.append(
                    f"GPU {device.name} is a {product}, an unknown model; run manage.py read_gpus on the node to add it"
                )
                continue
            uuid = attribute_text(device, "uuid")
            cuttable = uuid in slices
            if not cuttable and classes is not None and GPU_DEVICE_CLASS not in classes:
                problems.append(f"GPU {device.name} cannot be requested: DeviceClass {GPU_DEVICE_CLASS} does not exist")
                continue
            cuts = () if cuttable else (DiscoveredSlice(0, model.grid, model.whole.name),)
            isolation = Isolation.HARDWARE if cuttable else Isolation.DEVICE
            missing = missing_from_model(model, self._starts(model, slices[uuid], classes)) if cuttable else None
            # If the scheduler picks the GPU, its processor is unknown in advance.
            below = "" if self.extended else attribute_text(device, PCIE_ROOT)
            gpus.append(DiscoveredGpu(index, uuid, model.name, isolation, cuts, numa=below, published=missing))
        return DiscoveredNode(name, tuple(gpus), tuple(problems))

    def _starts(
        self, model: GpuModelSpec, slices: list[Device], classes: Collection[str] | None
    ) -> dict[str, set[int]]:
        """Return the memory slices at which a claim for each profile finds a device.

        The GPU as a whole is one of the profiles.
        """
        found: dict[str, set[int]] = defaultdict(set)
        by_name = {profile.name: profile for profile in model.profiles_with(Isolation.HARDWARE)}
        for device in slices:
            profile = by_name.get(attribute_text(device, "profile"))
            if profile and (classes is None or device_class_of(profile.name) in classes):
                units = _memory_slices(device)
                found[profile.name] |= {
                    place.start
                    for place in profile.placements
                    # If the scheduler picks the GPU, no placement is requested.
                    if (self.extended and not units) or {place.start, place.end - 1} <= units
                }
        if classes is None or GPU_DEVICE_CLASS in classes:
            found[model.whole.name] = {0}
        return found


def unpublished_profiles(slices: Sequence[ResourceSlice], models: Sequence[GpuModelSpec]) -> dict[str, list[str]]:
    """Return, by node, profiles its GPUs support but do not publish.

    Only GPUs that are partitioned for each lease are considered.
    """
    lacking: dict[str, set[str]] = defaultdict(set)
    published: dict[str, set[str]] = defaultdict(set)  # by GPU
    for device in (device for each in slices if each.spec.driver == DRA_DRIVER_NAME for device in each.spec.devices):
        published[attribute_text(device, "parentUUID")].add(attribute_text(device, "profile"))
    for each in slices:
        for device in _whole_gpus(each.spec.devices) if each.spec.driver == DRA_DRIVER_NAME else ():
            product = attribute_text(device, "productName").removeprefix("NVIDIA ").replace(" ", "-")
            model = match_gpu_model(product, _mebibytes(device), models)
            if model and (cuts := published.get(attribute_text(device, "uuid"))):
                sold = {profile.name for profile in model.profiles_with(Isolation.HARDWARE)}
                lacking[each.spec.node_name] |= sold - cuts
    return {node: sorted(profiles) for node, profiles in sorted(lacking.items()) if profiles}


def misallocated_device(lease: LeaseSpec, rank: int, claim: ResourceClaim, slices: Iterable[ResourceSlice]) -> str:
    """Return a device of a rank's claim outside its placements; empty if none.

    A device that no node publishes has no known place: it is not reported.
    """
    published = {
        (each.spec.node_name, device.name): device
        for each in slices
        if each.spec.driver == DRA_DRIVER_NAME
        for device in each.spec.devices
    }
    places = lease.slices_on(lease.nodes[rank])
    for each in claim.devices:
        device = published.get((each.pool, each.device)) if each.driver == DRA_DRIVER_NAME else None
        if device and not any(_is_device_at(device, place, lease.offering.isolation) for place in places):
            return f"{each.device} of {each.pool}"
    return ""


def _is_device_at(device: Device, place: SliceSpec, isolation: Isolation) -> bool:
    """Return whether a device matches a placement, as the claim's CEL expression would."""
    if isolation is Isolation.DEVICE:
        return attribute_text(device, "uuid") == place.gpu_uuid
    holds = {name.removeprefix(f"{DRA_DRIVER_NAME}/") for name in device.capacity}
    units = {f"memorySlice{unit}" for unit in (place.start, place.start + place.size - 1)}
    return attribute_text(device, "parentUUID") == place.gpu_uuid and units <= holds


def device_class_of(profile: str) -> str:
    """Return the DeviceClass of a MIG profile.

    It is one of ours, so that a quota can count it.
    """
    return f"mig-{profile.replace('+', '.')}.{labels.DOMAIN}"


def device_expression(isolation: Isolation, place: SliceSpec) -> str:
    """Return the CEL expression that only the device at this placement satisfies."""
    _check_isolation(isolation)
    _check_safe_text(place.gpu_uuid)
    device, holds = f"device.attributes['{DRA_DRIVER_NAME}']", f"device.capacity['{DRA_DRIVER_NAME}']"
    if isolation is Isolation.DEVICE:
        return f"{device}.uuid == '{place.gpu_uuid}'"
    units = sorted({place.start, place.start + place.size - 1})
    at = "".join(f" && 'memorySlice{unit}' in {holds}" for unit in units)
    return f"{device}.parentUUID == '{place.gpu_uuid}'{at}"


def _resource_claim(lease: LeaseSpec, rank: int) -> Manifest:
    isolation = lease.offering.isolation
    whole = isolation is Isolation.DEVICE
    requests = [
        {
            "exactly": {
                "allocationMode": "ExactCount",
                "count": 1,
                "deviceClassName": GPU_DEVICE_CLASS if whole else device_class_of(place.profile),
                "selectors": [{"cel": {"expression": device_expression(isolation, place)}}],
            },
            "name": f"slice-{number}",
        }
        for number, place in enumerate(lease.slices_on(lease.nodes[rank]))
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": names.resource_claim_name(lease.lease_id, lease.generation, rank)},
        "spec": {"devices": {"requests": requests}},
    }


def _device_class(profile: str) -> Manifest:
    device = f"device.attributes['{DRA_DRIVER_NAME}']"
    chosen = (
        f"device.driver == '{DRA_DRIVER_NAME}' && {device}.type == 'mig'"
        f" && {device}.profile == '{_check_safe_text(profile)}'"
    )
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"labels": {labels.MANAGED_BY: labels.MANAGER_NAME}, "name": device_class_of(profile)},
        "spec": {
            "extendedResourceName": gfd.mig_resource_name(profile),
            "selectors": [{"cel": {"expression": chosen}}],
        },
    }


def _check_isolation(isolation: Isolation) -> None:
    if isolation not in DraDriver.uncut:
        raise UnsupportedSpec(f"DRA allocates whole GPUs and MIG slices, not shares of isolation {isolation}")


def _check_safe_text(text: str) -> str:
    if not SAFE_TEXT.fullmatch(text):
        raise UnsupportedSpec(f"{text!r} is not a valid GPU or profile: it would break out of the expression")
    return text


def _whole_gpus(devices: list[Device]) -> list[Device]:
    whole = (device for device in devices if attribute_text(device, "type") == "gpu")
    return sorted(whole, key=lambda device: device.name)


def _slices_by_gpu(devices: list[Device]) -> dict[str, list[Device]]:
    """Return the possible slices of each GPU, by its UUID."""
    found: dict[str, list[Device]] = defaultdict(list)
    for device in devices:
        if of := attribute_text(device, "parentUUID"):
            found[of].append(device)
    return found


def _memory_slices(device: Device) -> set[int]:
    """Return the memory slices that a device says it occupies."""
    return {_memory_slice_number(name) for name in device.capacity} - {NO_UNIT}


@lru_cache(maxsize=1024)
def _memory_slice_number(name: str) -> int:
    found = MEMORY_SLICE.fullmatch(name)
    return int(found[1]) if found else NO_UNIT


def attribute_text(device: Device, name: str) -> str:
    found = device.attributes.get(name) or device.attributes.get(f"{DRA_DRIVER_NAME}/{name}")
    return (found.string or "") if found else ""


def _mebibytes(device: Device) -> int:
    amount = device.capacity.get("memory") or device.capacity.get(f"{DRA_DRIVER_NAME}/memory")
    found = re.fullmatch(r"(\d+)(Mi|Gi|)", amount.value if amount else "")
    if found is None:
        return 0
    per_mebibyte = {"Mi": (1, 1), "Gi": (1024, 1), "": (1, 2**20)}[found[2]]
    return int(found[1]) * per_mebibyte[0] // per_mebibyte[1]
