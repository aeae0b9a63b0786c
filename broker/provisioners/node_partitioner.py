"""Protocol for repartitioning a node: observe it, taint it, set its layout."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from broker.domain.repartition.gpu_layouts import GpuLayout
from broker.domain.repartition.repartition_steps import ObservedLayout


@dataclass(frozen=True, slots=True)
class PartitionedNode:
    """A node: our id, and its name and cluster as the cluster knows them."""

    id: str
    name: str
    cluster: str


class NodePartitioner(Protocol):
    """Sets the MIG layout of nodes.

    Every call may be repeated; it raises ClusterUnreachable when nobody knows whether it took effect.
    """

    def profiles(self, machines: Sequence[PartitionedNode]) -> dict[str, dict[str, int] | None]:
        """Return, by node id, the most slices of each profile per GPU.

        All nodes are of one cluster. None stands for all that the GPU model supports. A node that
        reports nothing is left out and must keep its layout.
        """

    def observe(self, machine: PartitionedNode, *, now: datetime) -> ObservedLayout:
        """Return the node's current layout and progress."""

    def prepare(self, machine: PartitionedNode, cuts: Mapping[int, GpuLayout], *, now: datetime) -> timedelta:
        """Publish a layout under both its names; return the time until the node knows it."""

    def taint(self, machine: PartitionedNode, *, on: bool) -> None:
        """Set or remove the taint that keeps new pods off the node."""

    def apply_config(self, machine: PartitionedNode, config: str, *, version: str, now: datetime) -> bool:
        """Set the layout a node must apply; False if it changed since it was observed."""
