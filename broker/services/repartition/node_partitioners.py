"""The partitioner of a node: the code that changes its GPUs in its cluster."""

from functools import cache
from typing import cast

from django.utils.module_loading import import_string

from broker.models import Node
from broker.provisioners.node_partitioner import NodePartitioner, PartitionedNode

PARTITIONERS = {
    "simulated": "broker.provisioners.simulated_partitioner.SimulatedPartitioner",
    "kubernetes": "broker.provisioners.kubernetes.mig_partitioner.MigManagerPartitioner",
}


@cache
def _load_partitioner(path: str) -> NodePartitioner:
    return cast(NodePartitioner, import_string(path)())


def partitioner_of(node: Node) -> NodePartitioner | None:
    """Return the partitioner of a node; None where its provisioner has none."""
    path = PARTITIONERS.get(node.cluster.provisioner)
    return _load_partitioner(path) if path else None


def machine_of(node: Node) -> PartitionedNode:
    return PartitionedNode(node.pk, node.name, node.cluster_id)
