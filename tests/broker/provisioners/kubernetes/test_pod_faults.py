"""Whose fault the end of a pod is.

The statuses are written as in real clusters; their sources are in tests/vendors.
"""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from broker.provisioners.base import Observation, ObservedState
from broker.provisioners.kubernetes.client.objects import ObservedPod
from broker.provisioners.kubernetes.observe.pod_faults import CONTAINER_RULES, POD_RULES, FaultRule, match_rule
from broker.provisioners.kubernetes.observe.pod_observation import observe_pods, pod_usage
from tests.vendors import load_cases

CASES = load_cases("pod_statuses")
CREATED, NOW = "2026-11-20T08:10:00Z", datetime(2026, 11, 20, 8, 50, tzinfo=UTC)
LOST, ENDED, REFUSED, PENDING = (
    ObservedState.LOST,
    ObservedState.ENDED,
    ObservedState.REFUSED,
    ObservedState.PENDING,
)
# What is observed, the beginning of what the tenant is told, and when the program last ran.
EXPECTED = {
    "unexpected-admission-unhealthy-mig": (LOST, "its node could not allocate the slice", "08:10:02"),
    "unexpected-admission-gpu-lost": (LOST, "its GPU is gone from its node", "08:10:02"),
    "outof-gpu": (LOST, "its node had no capacity for it", "08:10:02"),
    "node-affinity-after-restart": (LOST, "its node rejected it after a restart", "08:10:02"),
    "evicted-memory": (LOST, "its node ran short of resources and evicted it", "08:41:37"),
    "evicted-disk-pressure-admission": (LOST, "its node ran short of resources and evicted it", "08:41:37"),
    "evicted-dshm-emptydir": (ENDED, "it used more shared memory than its limit", "08:41:37"),
    "evicted-container-ephemeral": (ENDED, "it used more scratch storage than its limit", "08:41:37"),
    "oomkilled": (ENDED, "its command failed: it exceeded its memory limit (OOMKilled)", "08:41:37"),
    "errimagepull-auth-401": (REFUSED, "the image nvcr.io/example/trainer:25.09 cannot be pulled", None),
    "errimagepull-insufficient-scope": (REFUSED, "the image nvcr.io/example/trainer:25.09 cannot be pulled", None),
    "imageinspecterror-short-name": (REFUSED, "the image example/trainer:latest cannot be pulled", None),
    "createcontainererror-cdi-dra": (LOST, "its GPU is not available on its node", "08:10:02"),
    "runcontainererror-cuda-too-new": (REFUSED, "the image needs a newer CUDA driver than its node has", None),
    "crashloop-driver-not-loaded": (LOST, "its GPU is not available on its node", "08:10:02"),
    "runcontainererror-driver-rpc": (LOST, "its GPU is not available on its node", "08:10:02"),
    "starterror-cdi-unresolvable-failed": (LOST, "its GPU is not available on its node", "08:10:03"),
    "deadline-exceeded": (ENDED, "it reached the end of its time", "08:41:37"),
    "nodelost-terminating": (LOST, "its node is gone", "08:41:37"),
    "taint-manager-eviction": (LOST, "its node was drained", "08:41:37"),
    "preempted-by-scheduler": (LOST, "it was preempted by another pod", "08:41:37"),
    "podgc-node-gone": (LOST, "its node is gone", "08:41:37"),
    "completed": (ENDED, "its command finished", "08:41:37"),
    "scheduling-gated-kueue": (PENDING, "waiting for the cluster's own queue to admit it", None),
    "pod-initializing-hang": (PENDING, "pulling image", None),
    "containercreating-failedmount": (PENDING, "pulling image", None),
    "unschedulable-gpu-single": (LOST, "its node does not accept it", "08:10:00"),
    "unschedulable-mig": (LOST, "its node does not accept it", "08:10:00"),
    "unschedulable-taint-and-gpu-dra-wording": (LOST, "its node does not accept it", "08:10:00"),
    "unschedulable-dra-claim": (LOST, "its node does not accept it", "08:10:00"),
    "unschedulable-kai": (LOST, "its node does not accept it", "08:10:00"),
}


def observed_pod(status: dict[str, Any], metadata: dict[str, Any] | None = None, **spec: Any) -> ObservedPod:
    waits = status.get("conditions", [{}])[0].get("reason") in ("Unschedulable", "SchedulingGated")
    body = {
        "metadata": {"name": "p", "uid": "u", "creationTimestamp": CREATED, **(metadata or {})},
        "spec": {"nodeName": "" if waits else "n1", "restartPolicy": "Never", **spec},
        "status": status,
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=ObservedPod)


def observe(status: dict[str, Any], metadata: dict[str, Any] | None = None, **spec: Any) -> Observation:
    return observe_pods([observed_pod(status, metadata, **spec)], ranks=1, now=NOW)


def test_every_vendor_pod_status_has_an_expected_observation() -> None:
    assert CASES.keys() == EXPECTED.keys()


@pytest.mark.parametrize("case", EXPECTED)
def test_a_vendor_pod_status_is_observed_as_expected(case: str) -> None:
    seen, text, last = EXPECTED[case]
    found = observe(CASES[case]["status"], CASES[case].get("metadata"))
    assert found.seen is seen
    assert found.text.startswith(text)
    assert (found.last_seen.strftime("%H:%M:%S") if found.last_seen else None) == last


def terminated(reason: str, message: str = "", exit_code: int = 137) -> dict[str, Any]:
    state = {"reason": reason, "message": message, "exitCode": exit_code, "startedAt": CREATED, "finishedAt": CREATED}
    return {"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": state}}]}


def test_a_container_whose_status_is_unknown_after_a_reboot_is_lost() -> None:
    message = "The container could not be located when the pod was deleted.  The container used to be Running"
    found = observe(terminated("ContainerStatusUnknown", message))
    assert (found.seen, found.text) == (LOST, "its node restarted and lost it")


@pytest.mark.parametrize(
    "message",
    [
        "Pod ephemeral local storage usage exceeds the total limit of containers 20Gi. ",
        'Usage of EmptyDir volume "scratch" exceeds the limit "200Gi". ',
        'Container main exceeded its local ephemeral storage limit "200Gi". ',
    ],
)
def test_exceeding_the_scratch_limit_is_the_tenants_end(message: str) -> None:
    status = {"phase": "Failed", "reason": "Evicted", "message": message}
    assert observe(status).seen is ENDED


def test_a_command_that_does_not_exist_is_the_tenants_fault() -> None:
    message = 'exec: "trainer": executable file not found in $PATH: unknown'
    assert observe(terminated("StartError", message, 128)).seen is ENDED


def test_a_start_that_never_happened_has_no_usage() -> None:
    pod = observed_pod(CASES["starterror-cdi-unresolvable-failed"]["status"])
    assert pod_usage(pod) is None


@pytest.mark.parametrize(
    ("health", "seen"), [("Unhealthy", LOST), ("Healthy", ObservedState.READY), ("Unknown", ObservedState.READY)]
)
def test_a_pod_whose_gpu_is_reported_unhealthy_is_lost(health: str, seen: ObservedState) -> None:
    device = {"name": "nvidia.com/gpu", "resources": [{"resourceID": "GPU-8f0e", "health": health}]}
    status = {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": CREATED}],
        "containerStatuses": [
            {"name": "main", "state": {"running": {"startedAt": CREATED}}, "allocatedResourcesStatus": [device]}
        ],
    }
    found = observe(status)
    assert found.seen is seen
    assert ("nvidia.com/gpu GPU-8f0e" in found.text) is (seen is LOST)


def test_scheduling_gates_are_named_in_the_reason() -> None:
    gates = [{"name": "kueue.x-k8s.io/admission"}, {"name": "example.org/quota"}]
    found = observe(CASES["scheduling-gated-kueue"]["status"], schedulingGates=gates)
    assert "kueue.x-k8s.io/admission, example.org/quota" in found.text


def test_an_unknown_disruption_is_the_providers_fault() -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "NewReason", "lastTransitionTime": CREATED}
    found = observe({"phase": "Running", "conditions": [condition]}, {"deletionTimestamp": CREATED})
    assert (found.seen, found.text) == (LOST, "the cluster ended it")


@pytest.mark.parametrize("rule", [*POD_RULES, *CONTAINER_RULES], ids=lambda rule: rule.text)
def test_every_rule_has_a_source_and_a_text(rule: FaultRule) -> None:
    assert rule.source
    assert rule.text


def test_a_reason_without_a_rule_is_not_a_fault() -> None:
    assert match_rule(POD_RULES, "Completed", "") is None
    assert match_rule(POD_RULES, "", "") is None
