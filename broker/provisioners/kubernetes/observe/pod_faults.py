"""Table of reasons why pods end or do not start, and whose fault they are.

A fault of the provider loses the lease's place: it is not charged from then on, and is placed again or ended as
lost. A fault of the tenant ends the lease like a failed command. The first row that matches decides.

Nothing that a tenant writes may match a row: neither the last words of a program nor its command, which the
runtime repeats in its messages.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from broker.provisioners.kubernetes.client.objects import ContainerStatus, ObservedPod

ANY = re.compile("")
# Reasons that only a kubelet or runtime gives, and only for a container that never started. The message of any other
# reason may be the program's own.
START_REASONS = "StartError|ContainerCannotRun|CreateContainerError|RunContainerError"
IMAGE_REASONS = "ErrImagePull|ImagePullBackOff"
# What a runtime repeats of a tenant: quoted names, the command, the answer of a registry.
TENANT_WORDS = re.compile(
    r'exec: ".*|"(?:[^"\\]|\\.)*"|`[^`]*`'
    r"|unable to start container process: (?:error during container init: )?(?:exec|chdir|mkdir)\b.*"
    r"|server message:.*|unexpected (?:status|media type).*",
    re.DOTALL | re.IGNORECASE,
)


class PodFault(StrEnum):
    TENANT = "tenant"  # ended; charged up to its end
    PROVIDER = "provider"  # lost; not charged from the last moment it is known to have run


@dataclass(frozen=True, slots=True)
class FaultRule:
    """One row of the table: what is seen of a pod, and what it means."""

    reason: re.Pattern[str]
    fault: PodFault
    text: str  # what the tenant is told
    source: str  # where Kubernetes or NVIDIA's software writes it
    message: re.Pattern[str] = ANY
    by_node: bool = False  # the node would reject other pods too


def _rule(
    reason: str, fault: PodFault, text: str, source: str, message: str = "", *, by_node: bool = False
) -> FaultRule:
    return FaultRule(re.compile(reason), fault, text, source, re.compile(message, re.DOTALL), by_node)


TENANT, PROVIDER = PodFault.TENANT, PodFault.PROVIDER
EVICTION = "kubernetes pkg/kubelet/eviction"
# Reasons in a pod's status or in its condition DisruptionTarget.
POD_RULES: tuple[FaultRule, ...] = (
    _rule(
        "Evicted|TerminationByKubelet",
        TENANT,
        "it used more shared memory than its limit",
        f"{EVICTION}/eviction_manager.go, emptyDir limit of our volume shm",
        r'Usage of EmptyDir volume "(shm|dshm)" exceeds the limit',
    ),
    _rule(
        "Evicted|TerminationByKubelet",
        TENANT,
        "it used more scratch storage than its limit",
        f"{EVICTION}/eviction_manager.go",
        "Usage of EmptyDir volume .* exceeds the limit|exceeded its local ephemeral storage limit"
        "|ephemeral local storage usage exceeds the total limit",
    ),
    _rule(
        "DeadlineExceeded",
        TENANT,
        "it reached the end of its time",
        "kubernetes pkg/kubelet/active_deadline.go and pkg/controller/job",
    ),
    _rule("Evicted", PROVIDER, "its node ran short of resources and evicted it", f"{EVICTION}/helpers.go"),
    _rule(
        "Preempting|PreemptionByScheduler|PreemptionByKubeScheduler",
        PROVIDER,
        "it was preempted by another pod",
        "kubernetes pkg/scheduler/framework/preemption",
    ),
    _rule(
        "DeletionByTaintManager",
        PROVIDER,
        "its node was drained",
        "kubernetes pkg/controller/tainteviction",
    ),
    _rule(
        "EvictionByEvictionAPI",
        PROVIDER,
        "it was evicted through the Kubernetes API",
        "kubernetes pkg/registry/core/pod/storage/eviction.go",
    ),
    _rule(
        "DeletionByDeviceTaintManager",
        PROVIDER,
        "its GPU was reported as faulty",
        "kubernetes pkg/controller/devicetainteviction",
    ),
    _rule("TerminationByKubelet", PROVIDER, "its node ended it", f"{EVICTION} and pkg/kubelet/nodeshutdown"),
    _rule("DeletionByPodGC|NodeLost", PROVIDER, "its node is gone", "kubernetes pkg/controller/podgc, nodelifecycle"),
    _rule(
        "NodeAffinity",
        PROVIDER,
        "its node rejected it after a restart",
        "kubernetes pkg/kubelet/lifecycle/predicate.go",
    ),
    _rule(
        "VolumeAttachmentLimitExceeded",
        PROVIDER,
        "its node can attach no further volume",
        "kubernetes pkg/kubelet/volumemanager",
    ),
    _rule(
        "TopologyAffinityError",
        PROVIDER,
        "its node has no GPUs and CPUs of one NUMA node left for it",
        "kubernetes pkg/kubelet/cm/topologymanager",
        by_node=True,
    ),
    _rule(
        "SMTAlignmentError",
        PROVIDER,
        "its node gives CPUs as whole cores only",
        "kubernetes pkg/kubelet/cm/cpumanager",
        by_node=True,
    ),
    _rule(
        "TaintToleration|NodeName|NodePorts|NodeUnschedulable|AppArmor|PodOSNotSupported|PodOSSelectorNodeLabelDoesNotMatch"
        "|PodFeatureUnsupported|UnsupportedPodLevelResources|InvalidNodeInfo",
        PROVIDER,
        "its node rejected it",
        "kubernetes pkg/kubelet/lifecycle",
        by_node=True,
    ),
    _rule("Terminated|Shutdown|NodeShutdown", PROVIDER, "its node shut down", "kubernetes pkg/kubelet/nodeshutdown"),
    _rule(
        "UnexpectedAdmissionError",
        PROVIDER,
        "its GPU is gone from its node",
        "NVIDIA k8s-device-plugin, GetPreferredAllocation",
        "GPU is lost",
        by_node=True,
    ),
    _rule(
        "UnexpectedAdmissionError",
        PROVIDER,
        "its node could not allocate the slice",
        "kubernetes pkg/kubelet/cm/devicemanager",
        by_node=True,
    ),
    _rule(
        "OutOf.*",
        PROVIDER,
        "its node had no capacity for it",
        "kubernetes pkg/kubelet/lifecycle/predicate.go",
        by_node=True,
    ),
)
# Reasons of a terminated or waiting container.
CONTAINER_RULES: tuple[FaultRule, ...] = (
    _rule(
        "ContainerStatusUnknown|Unknown",
        PROVIDER,
        "its node restarted and lost it",
        "kubernetes pkg/kubelet/kubelet_pods.go; containerd, of a container without its shim",
    ),
    _rule(
        START_REASONS,
        TENANT,
        "the image needs a newer CUDA driver than its node has",
        "NVIDIA libnvidia-container, requirement check",
        "unsatisfied condition: (cuda|brand|driver)",
    ),
    _rule(
        START_REASONS,
        TENANT,
        "the image contains files of the NVIDIA driver, which its node adds",
        "NVIDIA libnvidia-container, of an image that was saved with a driver",
        "nvidia-container-cli: mount error: file creation failed: .*: file exists",
    ),
    _rule(
        START_REASONS,
        PROVIDER,
        "its GPU is not available on its node",
        "containerd and CRI-O CDI injection; NVIDIA libnvidia-container and container toolkit",
        "unresolvable CDI devices|CDI device injection failed|failed to inject CDI devices"
        "|failed to stat CDI host device"
        "|nvidia-container-cli: (initialization|device|detection|mount|driver|ldcache|container) error"
        "|adding custom device|lstat /dev/nvidia|nvidia-container-runtime[^:]*: no such file"
        "|no runtime for .* is configured"
        r"|unable to retrieve OCI runtime error \([^)]*\): …",
        by_node=True,
    ),
    _rule(
        START_REASONS,
        PROVIDER,
        "the disk of its node is full",
        "Linux ENOSPC in containerd, CRI-O and runc; not in a volume of the tenant",
        r"^(?!.*/var/lib/kubelet/pods/).*no space left on device",
        by_node=True,
    ),
    _rule(  # not by its node alone: some runtimes repeat what a registry answers
        IMAGE_REASONS,
        PROVIDER,
        "the disk of its node is full",
        "Linux ENOSPC in containerd and CRI-O",
        "no space left on device",
    ),
)


def match_rule(rules: Iterable[FaultRule], reason: str, message: str) -> FaultRule | None:
    """Return the first row that matches a reason and message; None if no row does."""
    return next(
        (rule for rule in rules if reason and rule.reason.fullmatch(reason) and rule.message.search(message)), None
    )


def fault_of_container(reason: str, message: str) -> FaultRule | None:
    """Return the row that explains a container's state; None if its program does.

    What the message repeats of the tenant is left out.
    """
    return match_rule(CONTAINER_RULES, reason, TENANT_WORDS.sub("…", message))


def fault_of_pod(pod: ObservedPod) -> FaultRule | None:
    """Return the row that explains a pod's end; None if its program ended by itself."""
    if found := match_rule(POD_RULES, pod.status.reason, pod.status.message):
        return found
    disrupted = pod.condition("DisruptionTarget")
    if disrupted is not None and disrupted.holds:
        if _ended_before(pod, disrupted.last_transition_time):
            return None
        return match_rule(POD_RULES, disrupted.reason, disrupted.message) or UNKNOWN_DISRUPTION
    for status in pod.status.container_statuses:
        ended = status.state.terminated
        if ended and (found := fault_of_container(ended.reason, ended.message)):
            return found
    if (
        pod.status.phase == "Failed"
        and pod.status.reason
        and not any(map(_ever_started, pod.status.container_statuses))
    ):
        return UNKNOWN_REJECTION
    return None


def _ended_before(pod: ObservedPod, moment: datetime | None) -> bool:
    """Tell whether all programs of a pod had ended by themselves before a disruption.

    A program that a signal killed may have been killed by what led to the disruption.
    """
    ends = [status.state.terminated for status in pod.status.container_statuses]
    if pod.status.phase not in ("Succeeded", "Failed") or not ends:
        return False
    is_deleted = pod.metadata.deletion_timestamp is not None
    return all(
        end is not None
        and end.exit_code < KILLED_BY_SIGNAL
        and (
            moment is None
            or end.finished_at is None
            or end.finished_at < moment
            or (end.finished_at == moment and not is_deleted)  # times are whole seconds, and a deletion follows at once
        )
        for end in ends
    )


def _ever_started(status: ContainerStatus) -> bool:
    state = status.state
    return bool(state.running or state.terminated or status.last_state.terminated or status.restart_count)


KILLED_BY_SIGNAL = 128
UNKNOWN_DISRUPTION = _rule(".*", PROVIDER, "the cluster ended it", "a reason that Kubernetes added later")
UNKNOWN_REJECTION = _rule(".*", PROVIDER, "its node rejected it", "a reason that Kubernetes added later", by_node=True)
