"""The words a lease, its end, its condition and what it was sold as may take."""

from enum import StrEnum


class LeaseState(StrEnum):
    """Where a lease stands in its life; the steps between are in lifecycle.py."""

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
    """Why a lease ended, a second word beside its state."""

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


class Condition(StrEnum):
    """What is the matter with a lease in whatever state it is; never a state of its own."""

    DEGRADED = "degraded"
    UNREACHABLE = "unreachable"
    REPARTITIONING = "repartitioning"


class Isolation(StrEnum):
    """What stands between two tenants on one card."""

    DEVICE = "device"
    HARDWARE = "hardware"
    SOFT = "soft"
    NONE = "none"


class VolumeState(StrEnum):
    """Whether a volume is there to be used; whether a lease has it is the lease's to say."""

    READY = "ready"
    DELETING = "deleting"  # what clusters keep of it is being taken away
    DELETED = "deleted"  # and is proven gone


class PriceClass(StrEnum):
    """On what terms capacity is sold."""

    ON_DEMAND = "on_demand"
    SPOT = "spot"
    RESERVED = "reserved"
