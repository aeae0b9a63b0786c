"""States, end reasons and conditions of leases, and the terms of their sale."""

from enum import StrEnum


class LeaseState(StrEnum):
    """The state of a lease; its transitions are in lease_transitions.py."""

    REQUESTED = "requested"
    QUEUED = "queued"
    PROVISIONING = "provisioning"
    ACTIVE = "active"
    STOPPING = "stopping"
    STOPPED = "stopped"
    RELEASING = "releasing"
    RELEASED = "released"
    FAILED = "failed"


class EndReason(StrEnum):
    """Why a lease ended; kept beside its state."""

    NONE = "none"
    BY_TENANT = "by_tenant"
    EXPIRED = "expired"
    IDLE = "idle"
    PREEMPTED = "preempted"
    DEVICE_LOST = "device_lost"
    UNPAID = "unpaid"
    BUDGET = "budget"
    PROVISION_TIMEOUT = "provision_timeout"
    SPEC_REFUSED = "spec_refused"
    BY_OPERATOR = "by_operator"


class LeaseCondition(StrEnum):
    """A problem of a lease in any state; never a state of its own."""

    DEGRADED = "degraded"
    UNREACHABLE = "unreachable"
    REPARTITIONING = "repartitioning"


class Isolation(StrEnum):
    """What separates two tenants on one GPU."""

    DEVICE = "device"
    HARDWARE = "hardware"
    SOFT = "soft"
    NONE = "none"


class VolumeState(StrEnum):
    """Whether a volume can be used.

    Whether a lease uses it is recorded with the lease.
    """

    READY = "ready"
    DELETING = "deleting"  # its data in clusters is being deleted
    DELETED = "deleted"  # its deletion is confirmed


class PriceClass(StrEnum):
    """The terms on which capacity is sold."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    RESERVED = "reserved"
