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
    "pod-initializing-hang": (PENDING, "preparing its container", None),
    "containercreating-failedmount": (PENDING, "pulling image or creating its container for 39 minutes", None),
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


GPU_WORDS = (
    "RuntimeError: Found no NVIDIA driver on your system (libnvidia-ml.so.1)",
    "CUDA error: GPU is lost",
    "nvidia-container-cli: initialization error: nvml error: driver not loaded",
    "unresolvable CDI devices nvidia.com/gpu=0",
    "write /var/lib/x: no space left on device",
)


@pytest.mark.parametrize("message", GPU_WORDS)
def test_the_last_words_of_a_program_are_no_fault_of_its_node(message: str) -> None:
    found = observe(terminated("Error", message, 1))
    assert (found.seen, found.exit_code, found.refused_by_node) == (ENDED, 1, False)


@pytest.mark.parametrize("message", GPU_WORDS)
def test_a_program_that_is_restarted_after_such_words_runs_on(message: str) -> None:
    last = terminated("Error", message, 1)["containerStatuses"][0]["state"]
    waits = {"waiting": {"reason": "CrashLoopBackOff"}}
    found = observe({"phase": "Running", "containerStatuses": [{"state": waits, "lastState": last, "restartCount": 4}]})
    assert (found.seen, found.running, found.refused_by_node) == (PENDING, True, False)


@pytest.mark.parametrize("words", GPU_WORDS)
@pytest.mark.parametrize(
    "written",
    [
        'failed to create containerd task: exec: "{}": executable file not found in $PATH: unknown',
        "runc create failed: unable to start container process: error during container init: exec: {0}: stat {0}: no",
        "crun: executable file `{}` not found in $PATH: No such file or directory",
    ],
)
def test_the_command_of_a_tenant_is_no_fault_of_its_node(words: str, written: str) -> None:
    found = observe(terminated("StartError", written.format(words), 128))
    assert (found.seen, found.exit_code, found.refused_by_node) == (ENDED, 128, False)


@pytest.mark.parametrize("reason", ["StartError", "CreateContainerError", "RunContainerError", "ContainerCannotRun"])
@pytest.mark.parametrize(
    "message",
    [
        "failed to inject CDI devices: failed to inject devices: failed to stat CDI host device"
        ' "/dev/nvidia-caps/nvidia-cap12": no such file or directory',
        'error gathering device information while adding custom device "/dev/nvidia3": no such file or directory',
        "fork/exec /usr/bin/nvidia-container-runtime: no such file or directory",
        'unable to retrieve OCI runtime error (open /run/log.json: no such file): exec: "nvidia-container-runtime": x',
        'failed to get sandbox runtime: no runtime for "nvidia" is configured',
        "nvidia-container-cli: ldcache error: process /sbin/ldconfig failed with error code: 1: unknown",
        "nvidia-container-cli: container error: cgroup subsystem devices not found: unknown",
        "failed to create shim task: mkdir /run/containerd/x: no space left on device: unknown",
    ],
)
def test_a_container_that_its_node_cannot_start_is_lost_by_its_node(reason: str, message: str) -> None:
    if reason in ("StartError", "ContainerCannotRun"):
        found = observe(terminated(reason, message, 128))
    else:
        waits = {"waiting": {"reason": reason, "message": message}}
        found = observe({"phase": "Pending", "containerStatuses": [{"state": waits}]})
    assert (found.seen, found.refused_by_node, found.exit_code) == (LOST, True, None)


def test_an_image_with_files_of_the_driver_is_the_tenants_fault() -> None:
    message = "nvidia-container-cli: mount error: file creation failed: /var/lib/x/libnvidia-ml.so.1: file exists"
    assert observe(terminated("StartError", message, 128)).seen is ENDED


REJECTIONS = (
    "TopologyAffinityError",
    "SMTAlignmentError",
    "TaintToleration",
    "NodePorts",
    "AppArmor",
    "PodOSNotSupported",
    "ReasonOfTheNextRelease",
)


@pytest.mark.parametrize("reason", REJECTIONS)
def test_a_pod_that_its_kubelet_rejects_is_placed_on_another_node(reason: str) -> None:
    found = observe({"phase": "Failed", "reason": reason, "message": "Pod was rejected: x"})
    assert (found.seen, found.refused_by_node) == (LOST, True)


def test_a_node_without_room_for_a_volume_stays_in_sale() -> None:
    found = observe({"phase": "Failed", "reason": "VolumeAttachmentLimitExceeded", "message": "x"})
    assert (found.seen, found.refused_by_node) == (LOST, False)


def test_an_unknown_reason_of_a_pod_that_ran_is_its_programs_end() -> None:
    found = observe({**terminated("Error", exit_code=3), "reason": "ReasonOfTheNextRelease"})
    assert (found.seen, found.exit_code) == (ENDED, 3)


def disrupted(status: dict[str, Any], at: str) -> dict[str, Any]:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    return {**status, "conditions": [{**condition, "lastTransitionTime": at}]}


@pytest.mark.parametrize(
    ("exit_code", "at", "seen"),
    [
        (0, "2026-11-20T08:10:00Z", ENDED),
        (0, "2026-11-20T08:30:00Z", ENDED),
        (1, "2026-11-20T08:30:00Z", ENDED),
        (0, "2026-11-20T08:09:59Z", LOST),  # told to stop before
        (137, "2026-11-20T08:30:00Z", LOST),
    ],
)
def test_a_program_that_ended_before_its_pod_was_evicted_has_ended(
    exit_code: int, at: str, seen: ObservedState
) -> None:
    status = {**terminated("Completed", exit_code=exit_code), "phase": "Failed" if exit_code else "Succeeded"}
    found = observe(disrupted(status, at))
    assert (found.seen, found.exit_code) == (seen, exit_code if seen is ENDED else None)


def test_a_batch_that_died_with_its_nodes_reboot_is_lost() -> None:
    found = observe(terminated("Unknown", exit_code=255))
    assert (found.seen, found.text) == (LOST, "its node restarted and lost it")


def pulls(message: str, *, init: bool = False) -> Observation:
    status = {"image": "a/b:1", "state": {"waiting": {"reason": "ImagePullBackOff", "message": message}}}
    waits = {"image": "c/d:1", "state": {"waiting": {"reason": "PodInitializing"}}}
    statuses = (
        {"initContainerStatuses": [status], "containerStatuses": [waits]} if init else {"containerStatuses": [status]}
    )
    return observe({"phase": "Pending", **statuses})


def test_a_full_disk_while_an_image_is_pulled_is_the_nodes_problem() -> None:
    found = pulls("failed to extract layer: write /var/lib/containerd/x: no space left on device: unknown")
    assert (found.seen, found.text.split(":")[0]) == (LOST, "the disk of its node is full")
    assert not found.refused_by_node, "a registry may write it into its answer"


@pytest.mark.parametrize("words", ["Server message: denied", "unexpected status from HEAD request to x: 500"])
def test_the_answer_of_a_registry_is_no_fault_of_a_node(words: str) -> None:
    assert pulls(f"failed to copy: {words} no space left on device").seen is REFUSED


def test_a_full_volume_of_the_tenant_is_no_fault_of_its_node() -> None:
    message = "mkdir /var/lib/kubelet/pods/1/volumes/csi/pvc/mount/a: no space left on device"
    assert observe(terminated("StartError", message, 128)).seen is ENDED


def test_an_init_container_whose_image_cannot_be_pulled_is_seen() -> None:
    found = pulls("manifest unknown", init=True)
    assert (found.seen, found.text) == (REFUSED, "the image a/b:1 cannot be pulled: manifest unknown")
