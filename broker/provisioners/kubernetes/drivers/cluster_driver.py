"""The slice drivers of one cluster, of which each node has its own."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.provisioners.kubernetes.client.objects import ClusterNode, ResourceSlice
from broker.provisioners.kubernetes.drivers import gfd
from broker.provisioners.kubernetes.drivers.base import PodSliceRequest, SliceDriver
from broker.provisioners.kubernetes.drivers.cpu import sells_cpus
from broker.provisioners.kubernetes.drivers.discovered_inventory import DiscoveredNode
from broker.provisioners.kubernetes.drivers.dra_devices import DRA_DRIVER_NAME, newest_pools
from broker.provisioners.kubernetes.drivers.hami import REGISTER_ANNOTATION
from broker.provisioners.kubernetes.render.spec import LeaseSpec, Manifest, ProjectCeilings

CPU = "cpu"
TWO_INTERFACES = (
    "It offers the same GPUs twice, as ResourceSlices of NVIDIA's DRA driver and as {offered} of a device plugin, so"
    " two pods may get one GPU; remove one of the two from this node."
)


@dataclass(frozen=True)
class ClusterDriver:
    """Requests slices by the driver of each node, and CPUs of labelled nodes by none."""

    name: str  # as operators choose it
    models: tuple[GpuModelSpec, ...]
    by_name: Mapping[str, SliceDriver]  # all there are: leases of a former driver of the cluster continue
    gpu_drivers: tuple[str, ...]  # that read its nodes; the last one reads what no other recognises

    @property
    def drivers(self) -> list[SliceDriver]:
        """Return the drivers that read its nodes."""
        return [self.by_name[name] for name in (*self.gpu_drivers, CPU)]

    @property
    def schedulers(self) -> tuple[str, ...]:
        return tuple(scheduler for each in self.drivers for scheduler in each.schedulers)

    @property
    def uses_resource_claims(self) -> bool:
        return any(each.uses_resource_claims for each in self.drivers)

    @property
    def reads_resource_slices(self) -> bool:
        return any(each.reads_resource_slices for each in self.drivers)

    def slice_request(self, lease: LeaseSpec, node: str) -> PodSliceRequest:
        return self._driver_of(lease, node).slice_request(lease, node)

    def extra_objects(self, lease: LeaseSpec) -> list[Manifest]:
        used = dict.fromkeys(self._driver_of(lease, node).name for node in lease.nodes)
        return [found for name in used for found in self.by_name[name].extra_objects(lease)]

    def quota_limits(self, most: ProjectCeilings) -> dict[str, str]:
        return {name: limit for each in self.drivers for name, limit in each.quota_limits(most).items()}

    def cluster_objects(self) -> list[Manifest]:
        return [found for each in self.drivers for found in each.cluster_objects()]

    def inventory(
        self, nodes: Sequence[ClusterNode], slices: Sequence[ResourceSlice], classes: Collection[str] | None = None
    ) -> list[DiscoveredNode]:
        published = _published_nodes(nodes, slices)
        read_by = defaultdict[str, list[ClusterNode]](list)
        for node in nodes:
            read_by[self.driver_for(node, published)].append(node)
        twice = {
            node.metadata.name: TWO_INTERFACES.format(offered=" and ".join(offered))
            for node in nodes
            if self.reads_resource_slices
            and node.metadata.name in published
            and (offered := gfd.offered_resources(node.status.allocatable))
        }
        return [
            replace(found, driver=driver.name, refusal=found.refusal or twice.get(found.name, ""))
            for driver in self.drivers
            for found in driver.inventory(read_by[driver.name], slices, classes)
        ]

    def driver_for(self, node: ClusterNode, published: Collection[str]) -> str:
        """Return the name of the driver that reads a node.

        `published` are the nodes whose GPUs are published as ResourceSlices.
        """
        has_gpus = node.metadata.name in published or bool(
            gfd.read_gpu_labels(node.metadata.labels, node.status.allocatable)
        )
        if not has_gpus and sells_cpus(node):
            return CPU
        if "dra" in self.gpu_drivers and node.metadata.name in published:
            return "dra"
        if "hami" in self.gpu_drivers and REGISTER_ANNOTATION in node.metadata.annotations:
            return "hami"
        return self.gpu_drivers[-1]

    def _driver_of(self, lease: LeaseSpec, node: str) -> SliceDriver:
        return self.by_name[lease.driver_on(node) or self.gpu_drivers[-1]]


def _published_nodes(nodes: Sequence[ClusterNode], slices: Sequence[ResourceSlice]) -> set[str]:
    """Return the nodes whose GPUs are published as ResourceSlices.

    Where these name no device, and a device plugin offers some, they are the plugin's.
    """
    published = {each.spec.node_name for each in slices if each.spec.driver == DRA_DRIVER_NAME}
    empty = {pool.node for pool in newest_pools(slices) if pool.complete and not pool.devices}
    offering = {node.metadata.name for node in nodes if gfd.offered_resources(node.status.allocatable)}
    return published - (empty & offering)
