"""The provisioner protocol: what code that makes leases real must offer.

The simulated provisioner and the Kubernetes one pass the same behaviour tests.
"""

import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from broker.domain.geometry.host_resources import DEFAULT_OF_A_GPU, HostResources
from broker.domain.logs.log_lines import LogLine
from broker.domain.placement.warm_slices import PartitioningEffort
from broker.domain.workloads.registry_logins import RegistryLogin
from broker.domain.workloads.secret_variables import SecretVariable
from broker.domain.workloads.templates import WorkloadTemplate

SPEC_NAME = re.compile(r"l-([0-9a-z]+)-g(\d{1,9})", re.ASCII)


@dataclass(frozen=True)
class ProvisionSlice:
    """One slice of a provision spec: a GPU and a run of its memory slices."""

    node: str
    gpu: str
    profile: str
    start: int
    size: int
    host: str = ""  # the node's name in its cluster
    uuid: str = ""  # the GPU's UUID
    grid: int = 0  # memory slices of the whole GPU
    memory_gb: int = 0  # of the whole GPU
    resource_name: str = ""  # resource name in its cluster, where not the usual one
    driver: str = ""  # how its cluster's pods request it
    cutting: PartitioningEffort | None = None  # what partitioning it needs, where we know: in a simulated cluster


@dataclass(frozen=True)
class VolumeRef:
    """What a cluster must know about a volume."""

    id: str
    size_gib: int
    tenant_id: str = ""
    project_id: str = ""


@dataclass(frozen=True)
class ProvisionSpec:
    """Provision spec: everything a provisioner needs to make one lease real.

    The name is never reused: it carries the generation that fences off earlier attempts.
    """

    name: str
    lease_id: str
    generation: int
    placed_at: datetime
    image: str
    command: str
    slices: tuple[ProvisionSlice, ...]
    workload: str = ""  # a template's name; empty: by its image
    template: WorkloadTemplate | None = None  # a saved template, of which the lease has a copy
    env: tuple[tuple[str, str], ...] = ()
    pull_secret: RegistryLogin | None = None
    secrets: tuple[SecretVariable, ...] = ()  # with their values only where its objects are made
    pull_always: bool = True  # the registry is asked before each start
    secret_fault: str = ""  # why the value of a secret is missing
    ssh_keys: tuple[str, ...] = ()
    access_token: str = ""  # secret that opens the lease's web page
    cluster: str = ""  # id of the cluster it was placed in
    domain: str = ""  # DNS domain of lease pages, and below the ingress that routes there
    ingress: str = ""
    tolerations: str = ""  # taints of that cluster's nodes that its pods tolerate
    provisioner: str = ""  # that cluster's provisioner, a key of settings.PROVISIONERS
    tenant_id: str = ""
    project_id: str = ""
    gpu_model: str = ""
    gpu_label: str = ""  # full name of the model
    profile: str = ""
    isolation: str = ""
    price_class: str = ""
    resources: HostResources = DEFAULT_OF_A_GPU  # that each slice brings of its node
    gpu_lost_since: datetime | None = None  # since when nothing can run on one of its GPUs; None: on all it can
    gpu_fault: str = ""  # what the node says of that GPU
    device_doubt: str = ""  # why it is unknown whether its devices still work; empty: they do
    device_doubted_since: datetime | None = None
    device_failed: bool = False  # one of its devices was reported as failed; it is checked again
    frozen: str = ""  # why that cluster is frozen; empty: it is not
    volume: VolumeRef | None = None  # mounted at its home, and kept when the lease is removed
    paid_until: datetime | None = None  # nothing runs after this, even if the broker is dead
    doubted: bool = False  # cached observations are doubted: ask the cluster itself


class ObservedState(StrEnum):
    PENDING = "pending"  # created, not ready yet
    READY = "ready"  # readiness verified
    REFUSED = "refused"  # will never become ready; `text` says why
    LOST = "lost"  # its node or a GPU is gone; `last_seen` is when it was last known to run
    ENDED = "ended"  # its command ended or failed; `text` says which, `last_seen` is when
    GONE = "gone"  # confirmed absent: its capacity is free


@dataclass(frozen=True)
class HeldPod:
    """An ended pod that its cluster keeps until we have recorded its end."""

    name: str
    uid: str


@dataclass(frozen=True)
class Observation:
    """What was observed of a provision spec at a moment."""

    seen: ObservedState
    text: str = ""
    percent: int | None = None
    last_seen: datetime | None = None
    again_in_s: float = 5.0  # when to observe it again
    refused_by_node: bool = False  # its node did not accept it, whatever its cluster says of the node
    answered: bool = True  # False: unknown; made up by a caller that got no answer
    running: bool = False  # running though not ready: it holds its slices, as of `last_seen`
    node_unreachable: bool = False  # its node sends no heartbeats, and may be back
    will_restart: bool = False  # its pod was ended by its node or cluster, and its controller creates another
    device_doubt: bool = False  # it is ready, but may have lost its device
    undated: bool = False  # lost at an unknown moment up to `last_seen`: the first such observation counts
    remains: tuple[HeldPod, ...] = ()  # pods to release once this observation is recorded
    proven_until: datetime | None = None  # it cannot have run later than this, whatever was recorded before
    exit_code: int | None = None  # of its command, where that ended by itself
    ends_at: datetime | None = None  # when its command will end, as only a simulated cluster knows


@dataclass(frozen=True, slots=True)
class LogRead:
    """New lines of a lease's log, oldest first."""

    lines: tuple[LogLine, ...] = ()
    cursor: dict[str, Any] = field(default_factory=dict)  # to pass to the next read: JSON that only it understands
    more: bool = False  # there was more than one read returns
    fault: str = ""  # why some of it cannot be read, in one sentence


@dataclass(frozen=True)
class KeptImage:
    """An image that a cluster keeps on its GPU nodes."""

    cluster: str
    image: str
    requested_at: datetime
    tolerations: str = ""  # taints of that cluster's nodes that its pods tolerate


@dataclass(frozen=True)
class ImagePresence:
    """How many GPU nodes have an image, and why the others do not."""

    nodes_total: int
    nodes_ready: int
    problem: str = ""


class ClusterUnreachable(Exception):
    """The cluster did not answer in time; the call is repeated later.

    What was requested may or may not have happened.
    """

    def __init__(self, text: str = "", *, again_in_s: float | None = None) -> None:
        super().__init__(text)
        self.again_in_s = again_in_s  # seconds until the cluster itself said to retry


class CommandFailed(Exception):
    """A command could not be started in a lease, with the reason."""


class Provisioner(Protocol):
    """Makes leases real.

    Every call may be repeated, may be the second with the same spec, and may raise ClusterUnreachable.
    """

    def ensure(self, spec: ProvisionSpec, *, now: datetime) -> Observation:
        """Create the lease's objects unless they exist; return their state."""

    def observe(self, spec: ProvisionSpec, *, now: datetime) -> Observation:
        """Return the state of the lease's objects without creating anything."""

    def let_go(self, spec: ProvisionSpec, remains: tuple[HeldPod, ...]) -> None:
        """Release ended pods whose end has been recorded."""

    def run_command(self, spec: ProvisionSpec, command: str, *, now: datetime) -> None:
        """Start a shell command beside the lease's program, without waiting for its end.

        Raises CommandFailed where it cannot be started.
        """

    def remove(self, spec: ProvisionSpec, *, now: datetime) -> Observation:
        """Delete the lease's objects; return GONE only once that is confirmed.

        The end of the lease is already recorded when this is called.
        """

    def read_log(self, spec: ProvisionSpec, cursor: dict[str, Any], *, newest_only: bool, now: datetime) -> LogRead:
        """Return a lease's new output and events since a cursor.

        The cursor {} is the beginning. `newest_only` leaves out what is between the cursor and the last thousand lines.
        """

    def names(self) -> list[str]:
        """List the names of all existing specs this installation made.

        Included are those that no lease accounts for.
        """

    def remove_named(self, name: str, *, now: datetime) -> None:
        """Delete the objects of a name that belongs to no lease."""

    def keep_image(self, kept: KeptImage, *, now: datetime) -> ImagePresence:
        """Have every GPU node pull an image and keep it; return how many have it."""

    def drop_image(self, kept: KeptImage, *, now: datetime) -> bool:
        """Give up an image; return whether that is confirmed."""

    def remove_volume(self, volume: VolumeRef, *, now: datetime) -> Observation:
        """Delete a volume with its data; return GONE once confirmed, PENDING until then."""


def spec_name(lease_id: str, generation: int) -> str:
    """Return the cluster object name of one generation of a lease.

    It is always the same, and never given to another generation or lease.
    """
    return f"l-{lease_id.removeprefix('lse_')}-g{generation}"


def parse_spec_name(name: str) -> tuple[str, int]:
    """Return the lease id and generation in a spec's name; no lease for other names."""
    found = SPEC_NAME.fullmatch(name)
    return (f"lse_{found[1]}", int(found[2])) if found else ("", 0)
