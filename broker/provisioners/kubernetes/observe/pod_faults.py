"""Table of reasons why pods end or do not start, and whose fault they are.

A fault of the provider loses the lease's place: it is not charged from then on, and is placed again or ended as
lost. A fault of the tenant ends the lease like a failed command. The first row that matches decides.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from broker.provisioners.kubernetes.client.objects import ObservedPod

ANY = re.compile("")


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
        "ContainerStatusUnknown",
        PROVIDER,
        "its node restarted and lost it",
        "kubernetes pkg/kubelet/kubelet_pods.go",
    ),
    _rule(
        ".*Error|ContainerCannotRun",
        TENANT,
        "the image needs a newer CUDA driver than its node has",
        "NVIDIA libnvidia-container, requirement check",
        "unsatisfied condition: (cuda|brand|driver)",
    ),
    _rule(
        ".*Error|ContainerCannotRun",
        PROVIDER,
        "its GPU is not available on its node",
        "containerd and CRI-O CDI injection; NVIDIA libnvidia-container",
        "unresolvable CDI devices|CDI device injection failed"
        "|nvidia-container-cli: (initialization|device|mount|driver) error|nvml error|unknown device"
        "|GPU is lost|no NVIDIA driver|libnvidia-ml",
        by_node=True,
    ),
)


def match_rule(rules: Iterable[FaultRule], reason: str, message: str) -> FaultRule | None:
    """Return the first row that matches a reason and message; None if no row does."""
    return next(
        (rule for rule in rules if reason and rule.reason.fullmatch(reason) and rule.message.search(message)), None
    )


def fault_of_pod(pod: ObservedPod) -> FaultRule | None:
    """Return the row that explains a pod's end; None if its program ended by itself."""
    disrupted = pod.condition("DisruptionTarget")
    if found := match_rule(POD_RULES, pod.status.reason, pod.status.message):
        return found
    if disrupted is not None and disrupted.holds:
        return match_rule(POD_RULES, disrupted.reason, disrupted.message) or UNKNOWN_DISRUPTION
    for status in pod.status.container_statuses:
        ended = status.state.terminated
        if ended and (found := match_rule(CONTAINER_RULES, ended.reason, ended.message)):
            return found
    return None


UNKNOWN_DISRUPTION = _rule(".*", PROVIDER, "the cluster ended it", "a reason that Kubernetes added later")
