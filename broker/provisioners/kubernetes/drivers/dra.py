"""Slices as devices of NVIDIA's DRA driver.

They are requested by ResourceClaims that name GPU and placement, or as extended resources.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from broker.domain.geometry.gpu_identification import UnidentifiedGpu, identify_gpu
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
from broker.provisioners.kubernetes.drivers.dra_devices import (
    DRA_DRIVER_NAME,
    PublishedPool,
    attribute_text,
    describe_device,
    has_fatal_taint,
    is_gpu_lost,
    is_static,
    memory_slices,
    newest_pools,
    refusing_taint,
    slices_by_gpu,
    states_memory_slices,
    whole_gpus,
)
from broker.provisioners.kubernetes.drivers.unsupported_devices import other_gpu_manager, unsupported_nodes
from broker.provisioners.kubernetes.render.spec import LeaseSpec, Manifest, ProjectCeilings, SliceSpec

PCI_ADDRESS = "resource.kubernetes.io/pciBusID"
PCIE_ROOT = "resource.kubernetes.io/pcieRoot"  # GPUs with the same root are attached to one processor
GPU_DEVICE_CLASS = "gpu.nvidia.com"  # NVIDIA's own class, which also serves nvidia.com/gpu
INCOMPLETE_POOL = "its DRA driver has not published all ResourceSlices of its pool yet; its GPUs stay as they were"
NO_SLICES = (
    "its GPUs are not published as ResourceSlices; check that NVIDIA's DRA driver runs on this node, or register the"
    " cluster with the driver automatic if a device plugin offers them"
)
NO_DEVICES = (
    "its DRA driver publishes no devices; check that NVIDIA's driver runs on this node, and read the log of its DRA"
    " driver's pod"
)
PASSED_THROUGH = "{names} are passed through to virtual machines (vfio), so pods cannot use them"
# Characters that are safe inside quotes of a CEL expression.
SAFE_TEXT = re.compile(r"[A-Za-z0-9./+_-]{1,80}", re.ASCII)


class NotSellable(ValueError):
    """A published GPU cannot be sold as it is; the message says why."""


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

    @property
    def reads_resource_slices(self) -> bool:
        return True

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
        ranks = [rank for rank, node in enumerate(lease.nodes) if lease.driver_on(node) in ("", self.name)]
        return [_resource_claim(lease, rank) for rank in ranks]

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
        labels = {node.metadata.name: node.metadata.labels for node in nodes}
        described = [
            with_nvlink_domain(self._node(pool, classes, labels[pool.node]), gfd.nvlink_domain(labels[pool.node]))
            for pool in newest_pools(slices)
            if pool.node in labels
        ]
        silent = [
            _unpublished_node(node) for node in nodes if node.metadata.name not in {each.name for each in described}
        ]
        described += [node for node in silent if node]
        return [*described, *unsupported_nodes(nodes, {node.name for node in described})]

    def _node(self, pool: PublishedPool, classes: Collection[str] | None, marks: Mapping[str, str]) -> DiscoveredNode:
        if not pool.complete:
            return DiscoveredNode(pool.node, (), (INCOMPLETE_POOL,), incomplete=True)
        gpus, problems, new = [], [], dict[str, GpuModelSpec]()
        slices, whole = slices_by_gpu(pool.devices), whole_gpus(pool.devices)
        announced = {attribute_text(device, "uuid") for device in whole}
        # Where MIG is static, the driver may leave out the GPU and announce its slices alone.
        parents = [(uuid, its[0]) for uuid, its in sorted(slices.items()) if uuid not in announced]
        for index, (uuid, device) in enumerate(
            [*((attribute_text(device, "uuid"), device) for device in whole), *parents]
        ):
            try:
                seen = replace(describe_device(device), is_virtual=gfd.has_virtual_gpus(marks))
                model = identify_gpu(seen, self.models)
                gpus.append(self._gpu(index, uuid, device, model, slices.get(uuid, []), classes))
            except (UnidentifiedGpu, NotSellable) as why:
                problems.append(f"GPU {device.name}: {why}")
                continue
            if model not in self.models:
                new[model.name] = model
        passed = [device for device in pool.devices if attribute_text(device, "type") == "vfio"]
        gpus = [_with_passed_through(gpu, whole, passed) for gpu in gpus]
        shared = {name for gpu in gpus for name in gpu.devices}
        if only_passed := sorted(device.name for device in passed if device.name not in shared):
            problems.append(PASSED_THROUGH.format(names=", ".join(only_passed)))
        if not pool.devices:
            return DiscoveredNode(pool.node, (), (NO_DEVICES,), offers_none=True)
        return DiscoveredNode(pool.node, tuple(gpus), tuple(problems), tuple(new.values()))

    def _gpu(
        self,
        index: int,
        uuid: str,
        device: Device,
        model: GpuModelSpec,
        slices: list[Device],
        classes: Collection[str] | None,
    ) -> DiscoveredGpu:
        """Return a GPU as whole, with existing slices, or partitioned for each lease; raise NotSellable."""
        if device.allow_multiple_allocations:
            raise NotSellable("it allows several allocations at once, so it is shared; disable consumable shares there")
        static = [each for each in slices if is_static(each)]
        # Where the driver announces slices alone, one of them stands for the GPU.
        is_whole = attribute_text(device, "type") == "gpu" or not static
        fault = refusing_taint(device) if is_whole else ""
        if slices and all(map(refusing_taint, slices)):
            fault = fault or refusing_taint(slices[0])
        if not slices and classes is not None and GPU_DEVICE_CLASS not in classes:
            raise NotSellable(f"DeviceClass {GPU_DEVICE_CLASS} does not exist, so it cannot be requested")
        # If the scheduler picks the GPU, its processor is unknown in advance.
        below = "" if self.extended else attribute_text(device, PCIE_ROOT)
        gpu = DiscoveredGpu(
            index,
            uuid,
            model.name,
            Isolation.HARDWARE,
            (),
            not fault,
            numa=below,
            fault=fault,
            lost=(is_whole and is_gpu_lost(device)) or all(map(has_fatal_taint, slices or [device])),
            devices=tuple(sorted({each.name for each in (device, *slices)})),
        )
        if static:
            return replace(gpu, cuts=_existing_slices(model, static))
        if slices:
            return replace(gpu, published=missing_from_model(model, self._starts(model, slices, classes)))
        return replace(gpu, isolation=Isolation.DEVICE, cuts=(DiscoveredSlice(0, model.grid, model.whole.name),))

    def _starts(
        self, model: GpuModelSpec, slices: list[Device], classes: Collection[str] | None
    ) -> dict[str, set[int]]:
        """Return the memory slices at which a claim for each profile finds a device.

        The GPU as a whole is one of the profiles.
        """
        found: dict[str, set[int]] = defaultdict(set)
        for device in slices:
            profile = model.mig_profile(attribute_text(device, "profile"))
            if profile and not refusing_taint(device) and (classes is None or device_class_of(profile.name) in classes):
                units = memory_slices(device)
                found[profile.name] |= {
                    place.start
                    for place in profile.placements
                    # If the scheduler picks the GPU, no placement is requested.
                    if (self.extended and not units) or {place.start, place.end - 1} <= units
                }
        if classes is None or GPU_DEVICE_CLASS in classes:
            found[model.whole.name] = {0}
        return found


def _with_passed_through(gpu: DiscoveredGpu, whole: Sequence[Device], passed: Sequence[Device]) -> DiscoveredGpu:
    """Add the devices that pass a GPU through to virtual machines.

    A claim of others for one of them holds the GPU.
    """
    addresses = {attribute_text(each, PCI_ADDRESS) for each in whole if each.name in gpu.devices} - {""}
    also = [each.name for each in passed if attribute_text(each, PCI_ADDRESS) in addresses]
    return replace(gpu, devices=tuple(sorted({*gpu.devices, *also})))


def _unpublished_node(node: ClusterNode) -> DiscoveredNode | None:
    """Return a node whose labelled GPUs are not published; None for others."""
    if gfd.read_gpu_labels(node.metadata.labels, node.status.allocatable) is None:
        return None
    why, offered = other_gpu_manager(node), gfd.offered_resources(node.status.allocatable)
    return DiscoveredNode(node.metadata.name, (), (why or NO_SLICES,), offers_none=not (why or offered))


def _existing_slices(model: GpuModelSpec, static: list[Device]) -> tuple[DiscoveredSlice, ...]:
    """Return the existing slices of a GPU; raise NotSellable if one is unknown."""
    found = []
    for device in static:
        name = attribute_text(device, "profile")
        profile, units = model.mig_profile(name), memory_slices(device)
        starts = {place.start for place in profile.placements} if profile else set()
        if profile is None or not units or min(units) not in starts:
            raise NotSellable(f"{model.label} has no known MIG profile {name} at memory slice {min(units, default=0)}")
        fault, lost = refusing_taint(device), has_fatal_taint(device)
        found.append(DiscoveredSlice(min(units), profile.memory, profile.name, fault=fault, lost=lost))
    return tuple(sorted(found))


def unpublished_profiles(slices: Sequence[ResourceSlice], models: Sequence[GpuModelSpec]) -> dict[str, list[str]]:
    """Return, by node, profiles its GPUs support but do not publish.

    Only GPUs that are partitioned for each lease are considered.
    """
    lacking: dict[str, set[str]] = defaultdict(set)
    published: dict[str, set[str]] = defaultdict(set)  # by GPU
    for device in (device for each in slices if each.spec.driver == DRA_DRIVER_NAME for device in each.spec.devices):
        published[attribute_text(device, "parentUUID")].add(attribute_text(device, "profile"))
    for each in slices:
        for device in whole_gpus(each.spec.devices) if each.spec.driver == DRA_DRIVER_NAME else ():
            try:
                model = identify_gpu(describe_device(device), models)
            except UnidentifiedGpu:
                continue
            if cuts := published.get(attribute_text(device, "uuid")):
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
    if attribute_text(device, "parentUUID") != place.gpu_uuid:
        return False
    if not states_memory_slices(device):  # the scheduler takes any free placement of the profile
        return attribute_text(device, "profile") == place.profile
    return {place.start, place.start + place.size - 1} <= memory_slices(device)


def device_class_of(profile: str) -> str:
    """Return the DeviceClass of a MIG profile.

    It is one of ours, so that a quota can count it.
    """
    return f"mig-{profile.replace('+', '.')}.{labels.DOMAIN}"


def device_expression(isolation: Isolation, place: SliceSpec) -> str:
    """Return the CEL expression of the device at this placement.

    Where devices do not state their memory slices, every placement on the GPU satisfies it.
    """
    _check_isolation(isolation)
    _check_safe_text(place.gpu_uuid)
    device, holds = f"device.attributes['{DRA_DRIVER_NAME}']", f"device.capacity['{DRA_DRIVER_NAME}']"
    if isolation is Isolation.DEVICE:
        return f"{device}.uuid == '{place.gpu_uuid}'"
    units = sorted({place.start, place.start + place.size - 1})
    at = " && ".join(f"'memorySlice{unit}' in {holds}" for unit in units)
    # A dynamic MIG device states its memory slices as counters, which selectors cannot see.
    placed = f"(!{holds}.exists(name, name.startsWith('memorySlice')) || ({at}))"
    return f"{device}.parentUUID == '{place.gpu_uuid}' && {placed}"


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
