"""Slices as extended resources of NVIDIA's device plugin.

Whole GPUs, MIG slices, and replicas by time-slicing or MPS.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from broker.domain.geometry.gpu_identification import NO_PROFILE, UnidentifiedGpu
from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.domain.geometry.product_names import comparison_key
from broker.domain.geometry.profiles import SHARES
from broker.domain.lifecycle.states import Isolation
from broker.provisioners.kubernetes.client.objects import ClusterNode, ResourceSlice
from broker.provisioners.kubernetes.drivers import gfd
from broker.provisioners.kubernetes.drivers.base import PodSliceRequest, UnsupportedSpec, mig_profile_names
from broker.provisioners.kubernetes.drivers.discovered_inventory import (
    DiscoveredGpu,
    DiscoveredNode,
    DiscoveredSlice,
    with_nvlink_domain,
)
from broker.provisioners.kubernetes.drivers.slice_layouts import spread_slices
from broker.provisioners.kubernetes.drivers.unsupported_devices import other_gpu_manager, unsupported_nodes
from broker.provisioners.kubernetes.render.spec import LeaseSpec, Manifest, ProjectCeilings, SliceSpec

GPU_RESOURCE, SHARED_GPU_RESOURCE = gfd.GPU_RESOURCE, f"{gfd.PREFIX}gpu.shared"
MIG_INVALID = (
    "its MIG layout is invalid for the MIG strategy single: all GPUs must have the same one profile; set mig.strategy"
    " to mixed in the ClusterPolicy, or nvidia.com/mig.config to one profile for all GPUs"
)
NONE_OFFERED = "its {product} is not offered to pods: {why}"
PLUGIN_SILENT = (
    "the device plugin offers no devices; check that it and NVIDIA's driver run on the node (where DRA is used: that"
    " NVIDIA's DRA driver publishes ResourceSlices)"
)
MIG_CHANGE_FAILED = (
    "changing its MIG layout to {config} failed; read the log of its mig-manager pod, and reboot the node if the GPU"
    " needs a reset"
)
UNKNOWN_RESOURCES = (
    "the node offers {names} instead of nvidia.com/gpu; pods cannot use GPUs that are meant for virtual machines, and a"
    " device plugin must not give them names of its own"
)
HAMI_MANAGES = "HAMi manages its GPUs; register this cluster with the driver hami or automatic"
SLICES_SHARED = (
    "slices of {profiles} have replicas, so two tenants would get one slice; remove MIG from the device plugin's"
    " sharing config (on GKE: create the node pool without GPU sharing)"
)
UNKNOWN_SHARING = (
    "its labels report shared GPUs without the number of shares (time-slicing or MPS); restart"
    " gpu-feature-discovery there, and upgrade it if that does not help"
)
MORE_THAN_LABELLED = (
    "its device plugin offers more than its labels report, so GPUs may be shared: more {more}; restart both"
    " gpu-feature-discovery and the device plugin there"
)


@dataclass(frozen=True, slots=True)
class DevicePluginDriver:
    """Requests slices from the device plugin, which picks the physical slice.

    Slices of one profile on one node are interchangeable.
    """

    models: tuple[GpuModelSpec, ...]
    name: str = "device_plugin"
    schedulers: tuple[str, ...] = ()
    uncut: ClassVar[frozenset[Isolation]] = frozenset()  # every GPU it offers is already partitioned, or whole

    @property
    def uses_resource_claims(self) -> bool:
        return False

    @property
    def reads_resource_slices(self) -> bool:
        return False

    def slice_request(self, lease: LeaseSpec, node: str) -> PodSliceRequest:
        requested = Counter(_requested_resource(lease.offering.isolation, place) for place in lease.slices_on(node))
        if lease.offering.isolation in gfd.SHARED_AS.values() and requested.total() > 1:
            raise UnsupportedSpec(
                f"{requested.total()} {lease.offering.profile} were requested on {node}, but a device "
                "plugin gives a pod one replica: several are not several times the compute"
            )
        return PodSliceRequest(limits=dict(sorted(requested.items())))

    def extra_objects(self, lease: LeaseSpec) -> list[Manifest]:
        return []

    def quota_limits(self, most: ProjectCeilings) -> dict[str, str]:
        lines = {f"requests.{gfd.mig_resource_name(name)}": str(most.slices) for name in mig_profile_names(self.models)}
        return {
            **lines,
            f"requests.{GPU_RESOURCE}": str(most.gpus),
            f"requests.{SHARED_GPU_RESOURCE}": str(most.slices),
        }

    def cluster_objects(self) -> list[Manifest]:
        return []

    def inventory(
        self, nodes: Sequence[ClusterNode], slices: Sequence[ResourceSlice], classes: Collection[str] | None = None
    ) -> list[DiscoveredNode]:
        found = ((node, gfd.read_gpu_labels(node.metadata.labels, node.status.allocatable)) for node in nodes)
        described = [
            with_nvlink_domain(self._node(node, labels), gfd.nvlink_domain(node.metadata.labels))
            for node, labels in found
            if labels is not None
        ]
        return [*described, *unsupported_nodes(nodes, {node.name for node in described})]

    def _node(self, node: ClusterNode, found: gfd.GpuLabels) -> DiscoveredNode:
        name = node.metadata.name
        if not gfd.offered_resources(node.status.allocatable) and (why := other_gpu_manager(node)):
            return DiscoveredNode(name, (), (why,))
        if found.mig_invalid:
            return DiscoveredNode(name, (), (MIG_INVALID,))
        try:
            model = gfd.model_of_labels(found, self.models)
        except UnidentifiedGpu as unidentified:
            return DiscoveredNode(name, (), (str(unidentified),))
        if why := _sharing_doubt(node, found):
            return DiscoveredNode(name, (), (why,))
        read = self._gpus(node, model, found)
        return replace(read, new_models=() if model in self.models else (model,))

    def _gpus(self, node: ClusterNode, model: GpuModelSpec, found: gfd.GpuLabels) -> DiscoveredNode:
        name = node.metadata.name
        if found.slice_profile:
            slices = _allocatable_amount(node, GPU_RESOURCE)
            return self._single(name, model, found, slices) if slices else _none_offered(node, found)
        if found.sharing is not None:
            return _shared_node(node, model, found, found.sharing)
        offered = _whole_gpu_resource(node, found)
        counts, whole = gfd.profile_counts(node.status.allocatable), _allocatable_amount(node, offered)
        if not whole and not counts:
            return _none_offered(node, found)
        # Unless strategy is `mixed`, slices have no resource name of their own: we could not observe a repartition.
        resource_name = "" if found.strategy == "mixed" and offered == GPU_RESOURCE else offered
        gpus = [_whole_gpu(name, index, model, resource_name) for index in range(whole)]
        most = _most_partitioned(model, counts) if found.count is None else max(found.count - whole, 0)
        return _node_with_slices(name, model, gpus, counts, most=most)

    def _single(self, name: str, model: GpuModelSpec, found: gfd.GpuLabels, slices: int) -> DiscoveredNode:
        profile = model.mig_profile(found.slice_profile)
        if profile is None:
            why = NO_PROFILE.format(model=model.label, profiles=found.slice_profile)
            return DiscoveredNode(name, (), (why,))
        gpus = -(-slices // profile.max_instances)
        read = _node_with_slices(name, model, [], {profile.name: slices}, most=gpus)
        return replace(read, gpus=tuple(replace(gpu, resource_name=GPU_RESOURCE) for gpu in read.gpus))


def _requested_resource(isolation: Isolation, place: SliceSpec) -> str:
    """Return the resource name by which a slice is requested on its node."""
    if place.resource_name:
        return place.resource_name
    if isolation is Isolation.HARDWARE:
        return gfd.mig_resource_name(place.profile)
    return GPU_RESOURCE if isolation is Isolation.DEVICE else SHARED_GPU_RESOURCE


def _none_offered(node: ClusterNode, found: gfd.GpuLabels) -> DiscoveredNode:
    why, unhealthy = _why_none_offered(node, found), _has_gpu_capacity(node)
    return DiscoveredNode(node.metadata.name, (), (why,), offers_none=True, all_unhealthy=unhealthy)


def _why_none_offered(node: ClusterNode, found: gfd.GpuLabels) -> str:
    labels, why = node.metadata.labels, PLUGIN_SILENT
    if labels.get(f"{gfd.PREFIX}mig.config.state") == "failed":
        why = MIG_CHANGE_FAILED.format(config=labels.get(f"{gfd.PREFIX}mig.config", "another one"))
    elif renamed := _unknown_resources(node):
        why = UNKNOWN_RESOURCES.format(names=", ".join(renamed))
    elif any(name.startswith("hami.io/") for name in node.metadata.annotations):
        why = HAMI_MANAGES
    return NONE_OFFERED.format(product=found.product, why=why)


def _unknown_resources(node: ClusterNode) -> list[str]:
    """Return the NVIDIA resources of a node that offers neither GPUs nor slices."""
    return sorted(
        name for name in node.status.allocatable if name.startswith(gfd.PREFIX) and _allocatable_amount(node, name)
    )


def _has_gpu_capacity(node: ClusterNode) -> bool:
    """Return whether a device plugin has registered devices, healthy or not."""
    return any(n.isdigit() and int(n) for name, n in node.status.capacity.items() if name.startswith(gfd.PREFIX))


def _whole_gpu_resource(node: ClusterNode, found: gfd.GpuLabels) -> str:
    """Return the resource name of whole GPUs, which may be their product's."""
    if _allocatable_amount(node, GPU_RESOURCE):
        return GPU_RESOURCE
    named = [
        name
        for name in sorted(node.status.allocatable)
        if name.startswith(gfd.PREFIX)
        and comparison_key(name.removeprefix(gfd.PREFIX)) == comparison_key(found.product)
    ]
    return named[0] if named else GPU_RESOURCE


def _most_partitioned(model: GpuModelSpec, counts: dict[str, int]) -> int:
    """Return how many partitioned GPUs these slices can lie on at most."""
    return sum(counts.values()) if model.has_mig_placements else 0


def _sharing_doubt(node: ClusterNode, found: gfd.GpuLabels) -> str:
    """Return why it is unclear what is shared on a node; empty if clear.

    A replica of a slice shares it with a neighbour without isolation, although its name says hardware
    isolation. Labels and device plugin are written by two programs, and after a change one of them is
    late: then nothing is sold.
    """
    given = gfd.profile_counts(node.status.allocatable)
    shared = {*found.shared_slices, *gfd.shared_profiles(node.status.allocatable)}
    if found.slice_profile and found.shared:
        shared.add(found.slice_profile)
    if shared:
        return SLICES_SHARED.format(profiles=", ".join(sorted(shared)))
    if found.sharing_problem:
        return found.sharing_problem
    if found.shared and found.sharing is None:
        return UNKNOWN_SHARING
    more = [
        f"{profile} than {found.slices[profile]}"
        for profile in given
        if given[profile] > found.slices.get(profile, given[profile])
    ]
    whole, replicas = _allocatable_amount(node, GPU_RESOURCE), _allocatable_amount(node, SHARED_GPU_RESOURCE)
    if found.shared and found.count is not None:
        most, got = found.count * found.replicas, max(whole, replicas)
        more += [f"replicas than {most}"] if got > most else []
    elif not found.shared:
        more += [f"GPUs than {found.count}"] if found.count is not None and whole > found.count else []
        more += ["replicas than 0"] if replicas else []
    return MORE_THAN_LABELLED.format(more=", ".join(more)) if more else ""


def _shared_node(node: ClusterNode, model: GpuModelSpec, found: gfd.GpuLabels, sharing: Isolation) -> DiscoveredNode:
    """Read a node whose GPUs have replicas, one GPU for each full set of them.

    The last GPU may be incomplete.
    """
    name = node.metadata.name
    share = next((share for share, parts in SHARES.items() if parts == found.replicas), None)
    if share is None or model.grid % found.replicas:
        parts = " or ".join(str(parts) for parts in sorted(SHARES.values()))
        why = f"each GPU has {found.replicas} replicas, which is not a share that is sold; configure {parts}"
        return DiscoveredNode(name, (), (why,))
    # Whole GPUs beside them have the usual name: those are not sold.
    renamed = _allocatable_amount(node, SHARED_GPU_RESOURCE)
    size, left = model.grid // found.replicas, renamed or _allocatable_amount(node, GPU_RESOURCE)
    cuts = tuple(DiscoveredSlice(start, size, share) for start in range(0, model.grid, size))
    gpus = [
        DiscoveredGpu(
            index,
            _pseudo_uuid(name, index),
            model.name,
            sharing,
            cuts[: left - first],
            resource_name="" if renamed else GPU_RESOURCE,
        )
        for index, first in enumerate(range(0, left, found.replicas))
    ]
    return DiscoveredNode(name, tuple(gpus))


def _node_with_slices(
    name: str, model: GpuModelSpec, gpus: list[DiscoveredGpu], counts: dict[str, int], *, most: int
) -> DiscoveredNode:
    """Add the fewest partitioned GPUs that can hold the slices to the whole ones."""
    profiles = {offered: model.mig_profile(offered) for offered in counts}
    known = {offered: profile.name for offered, profile in profiles.items() if profile}
    if unknown := sorted(set(counts) - set(known)):
        why = NO_PROFILE.format(model=model.label, profiles=", ".join(unknown))
        return DiscoveredNode(name, tuple(gpus), (why,))
    if not counts:
        return DiscoveredNode(name, tuple(gpus))
    resource_names = {ours: gfd.mig_resource_name(offered) for offered, ours in known.items() if offered != ours}
    for cuts in _possible_layouts(model, {ours: counts[offered] for offered, ours in known.items()}, most):
        cut = [
            DiscoveredGpu(
                index,
                _pseudo_uuid(name, index),
                model.name,
                Isolation.HARDWARE,
                tuple(replace(slice_, resource_name=resource_names.get(slice_.profile, "")) for slice_ in each),
            )
            for index, each in enumerate(cuts, start=len(gpus))
        ]
        return DiscoveredNode(name, (*gpus, *cut))
    had = ", ".join(f"{count} of {profile}" for profile, count in counts.items())
    why = f"{most} partitioned GPUs of {model.label} cannot hold {had}: slices are missing or labels are outdated"
    return DiscoveredNode(name, tuple(gpus), (why,))


def _possible_layouts(
    model: GpuModelSpec, counts: dict[str, int], most: int
) -> Iterator[tuple[tuple[DiscoveredSlice, ...], ...]]:
    """Yield layouts for all GPUs first, as nodes are mostly uniform, then for fewer."""
    for gpus in range(most, 0, -1):
        cuts = spread_slices(model, counts, gpus)
        if cuts is not None and all(cuts):
            yield cuts


def _whole_gpu(node: str, index: int, model: GpuModelSpec, resource_name: str) -> DiscoveredGpu:
    cut = (DiscoveredSlice(0, model.grid, model.whole.name),)
    return DiscoveredGpu(
        index, _pseudo_uuid(node, index), model.name, Isolation.DEVICE, cut, resource_name=resource_name
    )


def _pseudo_uuid(node: str, index: int) -> str:
    return f"{node}/{index}"


def _allocatable_amount(node: ClusterNode, resource: str) -> int:
    text = node.status.allocatable.get(resource, "0")
    return int(text) if text.isdigit() else 0
