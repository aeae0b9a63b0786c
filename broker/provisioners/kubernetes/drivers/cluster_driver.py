"""The slice drivers of one cluster: each node is read and used by the one that suits it."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from broker.domain.geometry.gpu_models import GpuModelSpec
from broker.provisioners.kubernetes.client.objects import ClusterNode, ResourceSlice
from broker.provisioners.kubernetes.drivers import gfd
from broker.provisioners.kubernetes.drivers.base import PodSliceRequest, SliceDriver, UnsupportedSpec
from broker.provisioners.kubernetes.drivers.cpu import CpuDriver, sells_cpus
from broker.provisioners.kubernetes.drivers.discovered_inventory import DiscoveredNode
from broker.provisioners.kubernetes.drivers.dra_devices import DRA_DRIVER_NAME
from broker.provisioners.kubernetes.drivers.hami import REGISTER_ANNOTATION
from broker.provisioners.kubernetes.render.spec import LeaseSpec, Manifest, ProjectCeilings


@dataclass(frozen=True)
class ClusterDriver:
    """Requests slices by the driver of each node, and CPUs of labelled nodes by none."""

    name: str  # as operators choose it
    models: tuple[GpuModelSpec, ...]
    drivers: tuple[SliceDriver, ...]  # of GPUs; the last one reads nodes that no other recognises

    @cached_property
    def by_name(self) -> dict[str, SliceDriver]:
        return {each.name: each for each in (*self.drivers, CpuDriver())}

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
        published = {each.spec.node_name for each in slices if each.spec.driver == DRA_DRIVER_NAME}
        read_by = defaultdict[str, list[ClusterNode]](list)
        for node in nodes:
            read_by[self.driver_for(node, published)].append(node)
        return [
            replace(found, driver=name)
            for name, driver in self.by_name.items()
            for found in driver.inventory(read_by[name], slices, classes)
        ]

    def driver_for(self, node: ClusterNode, published: Collection[str]) -> str:
        """Return the name of the driver that reads a node.

        `published` are the nodes whose GPUs are published as ResourceSlices.
        """
        has_gpus = node.metadata.name in published or bool(
            gfd.read_gpu_labels(node.metadata.labels, node.status.allocatable)
        )
        if not has_gpus and sells_cpus(node):
            return CpuDriver().name
        if "dra" in self.by_name and node.metadata.name in published:
            return "dra"
        if "hami" in self.by_name and REGISTER_ANNOTATION in node.metadata.annotations:
            return "hami"
        return self.drivers[-1].name

    def _driver_of(self, lease: LeaseSpec, node: str) -> SliceDriver:
        """Return the driver of a lease's slices on a node; UnsupportedSpec if the cluster has no such."""
        name = lease.driver_on(node) or self.drivers[-1].name
        if name not in self.by_name:
            raise UnsupportedSpec(
                f"slices of {node} are requested by {name}, and this cluster is registered with {self.name}"
            )
        return self.by_name[name]
