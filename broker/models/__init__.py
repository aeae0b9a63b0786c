from broker.models.allocations import Allocation
from broker.models.clusters import ClusterCredential, ClusterObject, ClusterWatch, Examination
from broker.models.inventory import (
    Cluster,
    Gpu,
    GpuModel,
    Health,
    InventoryChange,
    LayoutPolicy,
    Node,
    NodeState,
)
from broker.models.layouts import LayoutChange, LayoutStep
from broker.models.leases import Lease, StaleLease
from broker.models.moves import Move, MoveEntry, MovePlan
from broker.models.offerings import Offering, OfferingState
from broker.models.orphans import Installation, Orphan, our_mark
from broker.models.simulated import SimulatedNode, SimulatedPod, SimulatedVolume
from broker.models.transitions import Transition
from broker.models.volumes import Volume, VolumeStep

__all__ = [
    "Allocation",
    "Cluster",
    "ClusterCredential",
    "ClusterObject",
    "ClusterWatch",
    "Examination",
    "Gpu",
    "GpuModel",
    "Health",
    "Installation",
    "InventoryChange",
    "LayoutChange",
    "LayoutPolicy",
    "LayoutStep",
    "Lease",
    "Move",
    "MoveEntry",
    "MovePlan",
    "Node",
    "NodeState",
    "Offering",
    "OfferingState",
    "Orphan",
    "SimulatedNode",
    "SimulatedPod",
    "SimulatedVolume",
    "StaleLease",
    "Transition",
    "Volume",
    "VolumeStep",
    "our_mark",
]
