from broker.models.allocations import Allocation
from broker.models.clusters import ClusterCredential, ClusterExamination, ClusterObject, ClusterWatch
from broker.models.image_prepulls import ImagePrepull
from broker.models.inventory import Cluster, Gpu, GpuHealth, GpuModel, InventoryChange, LayoutPolicy, Node, NodeState
from broker.models.launch_templates import LaunchTemplate, OperatorTemplate, SavedTemplate
from broker.models.lease_arrays import LeaseArray
from broker.models.lease_attempts import LeaseAttempt
from broker.models.lease_logs import LeaseLog, LeaseLogChunk
from broker.models.lease_notices import LeaseNotice
from broker.models.lease_schedules import LeaseSchedule, OverlapPolicy, ScheduledRun, ScheduledRunResult
from broker.models.leases import Lease, StaleLease
from broker.models.offerings import Offering, OfferingState
from broker.models.orphans import Installation, Orphan, get_installation_id
from broker.models.relocations import Relocation, RelocationLogEntry, RelocationPlan
from broker.models.repartitions import Repartition, RepartitionLogEntry
from broker.models.secrets import Secret, SecretKind, SecretVersion
from broker.models.simulated import SimulatedNode, SimulatedPod, SimulatedVolume
from broker.models.spot_reclaims import PromisedSlot, ReclaimNotice, SpotReclaim
from broker.models.telemetry import GpuHour, GpuMinute, GpuSample, GpuSlot, SampleBatch
from broker.models.transitions import Transition
from broker.models.volumes import Volume, VolumeSizeChange

__all__ = [
    "Allocation",
    "Cluster",
    "ClusterCredential",
    "ClusterExamination",
    "ClusterObject",
    "ClusterWatch",
    "Gpu",
    "GpuHealth",
    "GpuHour",
    "GpuMinute",
    "GpuModel",
    "GpuSample",
    "GpuSlot",
    "ImagePrepull",
    "Installation",
    "InventoryChange",
    "LaunchTemplate",
    "LayoutPolicy",
    "Lease",
    "LeaseArray",
    "LeaseAttempt",
    "LeaseLog",
    "LeaseLogChunk",
    "LeaseNotice",
    "LeaseSchedule",
    "Node",
    "NodeState",
    "Offering",
    "OfferingState",
    "OperatorTemplate",
    "Orphan",
    "OverlapPolicy",
    "PromisedSlot",
    "ReclaimNotice",
    "Relocation",
    "RelocationLogEntry",
    "RelocationPlan",
    "Repartition",
    "RepartitionLogEntry",
    "SampleBatch",
    "SavedTemplate",
    "ScheduledRun",
    "ScheduledRunResult",
    "Secret",
    "SecretKind",
    "SecretVersion",
    "SimulatedNode",
    "SimulatedPod",
    "SimulatedVolume",
    "SpotReclaim",
    "StaleLease",
    "Transition",
    "Volume",
    "VolumeSizeChange",
    "get_installation_id",
]
