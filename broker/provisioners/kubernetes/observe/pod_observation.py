"""Turn the last known pods of a lease into an observation.

These functions are pure, so that every case can be tested.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from broker.provisioners.base import HeldPod, Observation, ObservedState
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.client.objects import (
    ClusterObjectHeader,
    ContainerStatus,
    ContainerTerminated,
    ObservedPod,
)
from broker.provisioners.kubernetes.observe.pod_faults import (
    FaultRule,
    PodFault,
    fault_of_container,
    fault_of_pod,
)
from broker.provisioners.kubernetes.observe.scheduler_messages import (
    StorageProblem,
    find_storage_problem,
    plain_reasons,
)

GPU_START_TIMEOUT = timedelta(seconds=60)  # a device plugin or driver that restarts needs less
IMAGE_PULL_TIMEOUT = timedelta(seconds=120)  # for an image that cannot be pulled: a registry may fail for a while
UNSCHEDULABLE_AFTER = timedelta(seconds=45)  # after this our database and the node disagree
PERMANENT_IMAGE_ERRORS = ("InvalidImageName", "ErrImageNeverPull")  # a retry will not help
IMAGE_PULL_ERRORS = (
    "ErrImagePull",
    "ImagePullBackOff",
    "RegistryUnavailable",
    "ImageInspectError",
    "SignatureValidationFailed",
)
CONTAINER_CREATE_ERRORS = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")
CONTAINER_START_ERRORS = ("StartError", "ContainerCannotRun")
NODE_RESTART_REASONS = ("Unknown", "ContainerStatusUnknown")
CONTAINER_STARTING = ("", "ContainerCreating", "PodInitializing")
UNSCHEDULED_REASONS = ("Unschedulable", "SchedulerError")
LONG_START = timedelta(minutes=10)  # after this a start without any report is called what it is
FINAL_PHASES = ("Succeeded", "Failed")
NO_START = "the container cannot be started"
UNHEALTHY_DEVICE = "its GPU is reported as unhealthy"
COMMAND_DONE = "its command finished"
AGAIN_SOON_S, AGAIN_LATER_S = 1.0, 5.0
MAX_TEXT = 300


@dataclass(frozen=True, slots=True)
class PodUsage:
    """When one pod ran, by the cluster's clock; `until` is None while it runs."""

    since: datetime
    until: datetime | None


def observe_pods(pods: Iterable[ObservedPod], *, ranks: int, now: datetime) -> Observation:
    """Return a lease's observation; the worst pod of the present generation decides."""
    pods = list(pods)
    newest = _newest_per_rank(pods)
    observations = [_observe_pod(pod, now) for pod in newest]
    combined = _combine(observations, ranks)
    replaced = [pod for pod in pods if pod not in newest or _will_be_replaced(pod)]
    over = [pod for pod in replaced if has_metering_finalizer(pod) and has_ended(pod)]
    if (
        combined.seen is ObservedState.PENDING and not combined.running
    ):  # a replacement that has not started: it last ran when its predecessor ended
        ends = [end for pod in over if pod_usage(pod) and (end := _last_known_running(pod))]
        combined = replace(combined, last_seen=max(ends, default=None))
    if _is_not_running(combined):
        idle = [pod for pod, observation in zip(newest, observations, strict=True) if _is_not_running(observation)]
        until = _earliest(_last_ran_at(pod, pods) for pod in idle)  # from then on not all ranks ran
        last_seen = combined.last_seen and _earliest([combined.last_seen, until])
        combined = replace(combined, last_seen=last_seen, proven_until=until)
    remains = tuple(map(held_pod, over))
    return replace(combined, remains=remains) if remains else combined


def _is_not_running(observation: Observation) -> bool:
    return observation.seen is ObservedState.LOST or (
        observation.seen is ObservedState.PENDING and not observation.running
    )


def _earliest(moments: Iterable[datetime | None]) -> datetime | None:
    return min(filter(None, moments), default=None)


def _last_ran_at(newest: ObservedPod, pods: Sequence[ObservedPod]) -> datetime | None:
    """Return when a rank last ran, as now known; None while it may run.

    An earlier observation may have seen it running later than that: a kubelet reports an end some time
    after it, and a watch delivers it later still.
    """
    if has_ended(newest) and not _ended_before_start(newest):
        return _last_known_running(newest)
    if _has_started(newest) or newest.status.phase == "Running":
        return None
    before = [pod for pod in pods if _rank(pod) == _rank(newest) and pod is not newest]
    if not all(has_ended(pod) for pod in before):
        return None
    ends = [end for pod in before if pod_usage(pod) and (end := _last_known_running(pod))]
    return max(ends, default=_idle_since(newest))


def _idle_since(pod: ObservedPod) -> datetime | None:
    """Return since when a pod waits to start.

    When it was created, the pod it replaces had ended.
    """
    ready = pod.condition("Ready")
    since = [pod.metadata.creation_timestamp, ready.last_transition_time if ready else None]
    return max(filter(None, since), default=None)


def has_metering_finalizer(pod: ObservedPod) -> bool:
    """Tell whether a pod's finalizer keeps it until we release it."""
    return labels.METERING_FINALIZER in pod.metadata.finalizers


def has_ended(pod: ObservedPod) -> bool:
    """Tell whether a pod never runs again: it ended, or only finalizers remain."""
    return pod.status.phase in FINAL_PHASES or pod.metadata.deletion_grace_period_seconds == 0


def held_pod(pod: ObservedPod) -> HeldPod:
    return HeldPod(pod.metadata.name, pod.metadata.uid)


def ended_at(anchor: ClusterObjectHeader | None, pods: Sequence[ObservedPod]) -> datetime | None:
    """Return when a lease ended whose anchor is deleted or being deleted.

    None while only pods that are still ending could tell. The anchor's deletion ended the lease, unless
    all its pods were over before: slow ends are not charged. If there is no pod that ran, its last one
    was released earlier, and that step recorded its end.
    """
    deleted = anchor.metadata.deletion_timestamp if anchor else None
    ran = [pod for pod in pods if may_have_run(pod)]
    if not ran:
        return None
    if all(has_ended(pod) for pod in ran):
        ends = [moment for pod in ran if (moment := _last_known_running(pod))]
        return min(max(ends), deleted or max(ends)) if ends else deleted
    return deleted


def _newest_per_rank(pods: Iterable[ObservedPod]) -> list[ObservedPod]:
    """Return the present pod of each rank."""
    newest: dict[str, ObservedPod] = {}
    for pod in sorted(pods, key=_creation_order):
        newest[_rank(pod)] = pod
    return list(newest.values())


def _rank(pod: ObservedPod) -> str:
    return pod.metadata.labels.get(labels.RANK, "0")


def _will_be_replaced(pod: ObservedPod) -> bool:
    """Tell whether a deleted pod's controller will create another one after it."""
    going = pod.metadata.deletion_timestamp is not None
    return going and (pod.spec.restart_policy == "Always" or _ended_before_start(pod))


def may_have_run(pod: ObservedPod) -> bool:
    return pod.status.phase != "Pending" or _has_started(pod)


def _ended_before_start(pod: ObservedPod) -> bool:
    return pod.status.phase == "Pending" and has_ended(pod)


def _combine(observation: list[Observation], ranks: int) -> Observation:
    # When the command ends on one node the others continue; the lease is over when all ended.
    for kind in (ObservedState.REFUSED, ObservedState.LOST, ObservedState.PENDING):
        if found := [each for each in observation if each.seen is kind]:
            return min(found, key=lambda each: each.running)
    if len(observation) < ranks:
        return Observation(ObservedState.PENDING, "being created", again_in_s=AGAIN_SOON_S)
    if all(each.seen is ObservedState.ENDED for each in observation):
        return min(observation, key=lambda each: each.text == COMMAND_DONE)
    return Observation(ObservedState.READY, "readiness verified")


def pod_usage(pod: ObservedPod) -> PodUsage | None:
    """Return when a pod's program ran, first start to end; None if never."""
    starts, ends, open_ended = [], [], False
    for status in pod.status.container_statuses:
        for state in (status.last_state, status.state):
            if state.terminated and state.terminated.started_at:
                starts.append(state.terminated.started_at)
                ends.append(state.terminated.finished_at)
        if status.state.running and status.state.running.started_at:
            starts.append(status.state.running.started_at)
            open_ended = True
    if not starts:
        return None
    over = [end for end in ends if end is not None]
    # After restarts the first start is no longer in the status: use the pod's own start.
    since = min([*starts, *([pod.status.start_time] if _restarted(pod) and pod.status.start_time else [])])
    still = open_ended or (pod.status.phase not in FINAL_PHASES and pod.metadata.deletion_timestamp is None)
    return PodUsage(since, None if still else max(over, default=None))


def _restarted(pod: ObservedPod) -> bool:
    return any(status.restart_count > 1 for status in pod.status.container_statuses)


def _creation_order(pod: ObservedPod) -> tuple[str, str]:
    made = pod.metadata.creation_timestamp
    return (made.isoformat() if made else "", pod.metadata.uid)


def _observe_pod(pod: ObservedPod, now: datetime) -> Observation:
    if _ended_before_start(pod):
        return Observation(ObservedState.PENDING, "being created", again_in_s=AGAIN_SOON_S)
    if has_ended(pod):
        return _observe_ended(pod)
    disrupted = pod.condition("DisruptionTarget")
    if disrupted is not None and disrupted.holds and (fault := fault_of_pod(pod)):
        return _observe_fault(pod, fault)
    if pod.status.reason == "NodeLost" and (fault := fault_of_pod(pod)):  # its kubelet may still run it
        return replace(_observe_fault(pod, fault), last_seen=_idle_since(pod))
    if pod.metadata.deletion_timestamp is not None:
        return Observation(ObservedState.PENDING, "shutting down", again_in_s=AGAIN_SOON_S)
    if device := _unhealthy_device(pod):
        text = _join_detail(UNHEALTHY_DEVICE, device)
        return Observation(ObservedState.LOST, text, last_seen=now, undated=True)
    ready = pod.condition("Ready")
    if pod.status.phase == "Running" and ready is not None and ready.holds:
        return Observation(ObservedState.READY, "readiness verified")
    if not pod.spec.node_name:
        return _observe_unscheduled(pod, now)
    observation = _observe_starting(pod, now)
    if observation.seen is ObservedState.LOST or not _has_started(pod) or _waits_after_reboot(pod):
        return observation
    return replace(observation, last_seen=now, running=observation.seen is ObservedState.PENDING)


def _unhealthy_device(pod: ObservedPod) -> str:
    """Return a device that the kubelet reports as unhealthy; empty if none."""
    return next(
        (
            f"{resource.name} {device.resource_id}".strip()
            for status in pod.status.container_statuses
            for resource in status.allocated_resources_status
            for device in resource.resources
            if device.health == "Unhealthy"
        ),
        "",
    )


def _observe_starting(pod: ObservedPod, now: datetime) -> Observation:
    for status in (*_unfinished_init_containers(pod), *pod.status.container_statuses):
        if status.state.waiting is not None:
            return _observe_waiting(pod, status, now)
        ended = status.state.terminated
        if ended is not None and ended.reason in CONTAINER_START_ERRORS:
            return Observation(
                ObservedState.PENDING, _join_detail(NO_START, ended.message.strip()), again_in_s=AGAIN_SOON_S
            )
    return Observation(ObservedState.PENDING, _starting_text(pod, now), again_in_s=AGAIN_SOON_S)


def _unfinished_init_containers(pod: ObservedPod) -> list[ContainerStatus]:
    """Return the init containers that failed to start; those before them are done."""
    return [
        each
        for each in pod.status.init_container_statuses
        if each.state.waiting and each.state.waiting.reason not in CONTAINER_STARTING
    ]


def _starting_text(pod: ObservedPod, now: datetime) -> str:
    """Return what a pod does that has a node and no fault.

    A kubelet does not report a pull as such: it pulls between the sandbox and the container.
    """
    if pod.status.phase == "Unknown":
        return "its node does not report"
    if pod.status.phase == "Running":
        return "starting"
    if pod.status.start_time is None and not pod.status.container_statuses:
        return "waiting for its node to accept it"
    sandbox = pod.condition("PodReadyToStartContainers")
    if sandbox is not None and not sandbox.holds:
        return "preparing its volumes and network"
    if any(each.state.running for each in pod.status.init_container_statuses):
        return "preparing its container"
    waits_s = (now - (pod.status.start_time or pod.metadata.creation_timestamp or now)).total_seconds()
    if waits_s >= LONG_START.total_seconds():
        return f"pulling image or creating its container for {int(waits_s // 60)} minutes"
    return "pulling image" if sandbox is not None else "preparing its container"


def _has_started(pod: ObservedPod) -> bool:
    """Tell whether a pod's program ever started; its node holds the slices since then.

    Whether it is ready, or ended and waits for a restart, does not matter.
    """
    return any(
        status.state.running or status.state.terminated or status.last_state.terminated or status.restart_count
        for status in pod.status.container_statuses
    )


def _waits_after_reboot(pod: ObservedPod) -> bool:
    """Tell whether a pod's program died with its node and does not run again yet."""
    ends = [
        status.state.terminated or status.last_state.terminated
        for status in pod.status.container_statuses
        if status.state.running is None
    ]
    return any(end is not None and end.reason in NODE_RESTART_REASONS for end in ends)


def _observe_ended(pod: ObservedPod) -> Observation:
    """Return the observation of an ended pod: ended by its node, or finished."""
    if fault := fault_of_pod(pod):
        return _observe_fault(pod, fault)
    if _will_be_replaced(pod):
        last_seen = _last_known_running(pod)
        return Observation(ObservedState.LOST, "its pod no longer exists", last_seen=last_seen, will_restart=True)
    ended = _terminated_state(pod)
    if ended is None:
        text = pod.status.message or f"it ended as {pod.status.phase.lower()}"
    elif ended.exit_code == 0:
        text = COMMAND_DONE
    else:
        text = f"its command failed: {_exit_text(ended)}"
    code = ended.exit_code if ended else None
    return Observation(ObservedState.ENDED, text[:MAX_TEXT], last_seen=_last_known_running(pod), exit_code=code)


def _observe_fault(pod: ObservedPod, fault: FaultRule) -> Observation:
    """Return the observation of a pod that its cluster ended or could not start."""
    seen = ObservedState.LOST if fault.fault is PodFault.PROVIDER else ObservedState.ENDED
    detail = pod.status.message.strip() or _start_error(pod)
    return Observation(
        seen,
        _join_detail(fault.text, detail),
        last_seen=_last_known_running(pod),
        refused_by_node=fault.by_node,
        will_restart=seen is ObservedState.LOST and pod.spec.restart_policy == "Always",
    )


def _start_error(pod: ObservedPod) -> str:
    """Return the last line a container runtime wrote about a failed start."""
    ended = _terminated_state(pod)
    return _last_line(ended.message) if ended and ended.reason in CONTAINER_START_ERRORS else ""


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def _observe_unscheduled(pod: ObservedPod, now: datetime) -> Observation:
    placed = pod.condition("PodScheduled")
    if placed is not None and placed.reason == "SchedulingGated":
        gates = ", ".join(gate.name for gate in pod.spec.scheduling_gates) or "unnamed"
        text = f"waiting for the cluster's own queue to admit it (scheduling gates: {gates})"
        return Observation(ObservedState.PENDING, text, again_in_s=AGAIN_LATER_S)
    if placed is None or placed.reason not in UNSCHEDULED_REASONS:
        return Observation(ObservedState.PENDING, "waiting for its node", again_in_s=AGAIN_SOON_S)
    since = placed.last_transition_time or pod.metadata.creation_timestamp or now
    storage, reasons = find_storage_problem(placed.message), plain_reasons(placed.message)
    if storage is StorageProblem.TIME:
        text = _join_detail("waiting for its volume", reasons)
        return Observation(ObservedState.PENDING, text, again_in_s=AGAIN_LATER_S)
    if now - since < UNSCHEDULABLE_AFTER or placed.reason != "Unschedulable":
        return Observation(ObservedState.PENDING, "waiting for its node", again_in_s=AGAIN_LATER_S)
    if storage is StorageProblem.OTHER_NODE:  # the node takes other pods
        return Observation(ObservedState.LOST, _join_detail("its volume needs another node", reasons), last_seen=since)
    text = _join_detail("its node does not accept it", reasons)
    return Observation(ObservedState.LOST, text, last_seen=since, refused_by_node=True)


def _observe_waiting(pod: ObservedPod, status: ContainerStatus, now: datetime) -> Observation:
    waiting = status.state.waiting
    reason, message = (waiting.reason, waiting.message) if waiting else ("", "")
    tried = now - (pod.metadata.creation_timestamp or now)
    failed = status.last_state.terminated if reason == "CrashLoopBackOff" else None
    if failed and failed.reason not in CONTAINER_START_ERRORS:  # it ran, and is restarted in its place
        fault = None
    else:
        fault = fault_of_container(*((failed.reason, failed.message) if failed else (reason, message)))
    if fault and fault.fault is PodFault.PROVIDER and tried >= GPU_START_TIMEOUT:
        text = _join_detail(fault.text, _last_line(failed.message if failed else message))
        return Observation(ObservedState.LOST, text, last_seen=_idle_since(pod), refused_by_node=fault.by_node)
    if fault and fault.fault is PodFault.TENANT:
        return _pending_or_refused(_join_detail(fault.text, _last_line(message)), tried)
    if reason in PERMANENT_IMAGE_ERRORS:
        return Observation(ObservedState.REFUSED, _join_detail(f"the image {status.image} cannot be used", message))
    if reason in IMAGE_PULL_ERRORS:
        text = _join_detail(f"the image {status.image} cannot be pulled", message)
        return _pending_or_refused(text, tried)
    if reason in CONTAINER_CREATE_ERRORS:
        return _pending_or_refused(_join_detail("the container cannot be created", message), tried)
    if reason in CONTAINER_START_ERRORS:
        return _pending_or_refused(_join_detail(NO_START, message), tried)
    if reason == "CrashLoopBackOff":
        last = status.last_state.terminated
        if last and last.reason in CONTAINER_START_ERRORS:
            return Observation(
                ObservedState.PENDING, _join_detail(NO_START, last.message.strip()), again_in_s=AGAIN_LATER_S
            )
        why = f": {_exit_text(last)}" if last else ""
        text = f"the program exited {status.restart_count} times{why}; it is restarted"
        return Observation(ObservedState.PENDING, text[:MAX_TEXT], again_in_s=AGAIN_LATER_S)
    if reason not in CONTAINER_STARTING:
        text = _join_detail(f"its container waits ({reason})", message)
        return Observation(ObservedState.PENDING, text, again_in_s=AGAIN_LATER_S)
    return Observation(ObservedState.PENDING, _starting_text(pod, now), again_in_s=AGAIN_SOON_S)


def _pending_or_refused(text: str, tried: timedelta) -> Observation:
    if tried >= IMAGE_PULL_TIMEOUT:
        return Observation(ObservedState.REFUSED, text)
    return Observation(ObservedState.PENDING, text, again_in_s=AGAIN_LATER_S)


def _terminated_state(pod: ObservedPod) -> ContainerTerminated | None:
    return next((each.state.terminated for each in pod.status.container_statuses if each.state.terminated), None)


def _exit_text(ended: ContainerTerminated) -> str:
    if ended.reason == "OOMKilled":
        return "it exceeded its memory limit (OOMKilled)"
    return _join_detail(f"exit code {ended.exit_code}", _last_line(ended.message))


def _last_known_running(pod: ObservedPod) -> datetime | None:
    """Return the last moment a pod is known to have run, by the cluster's clock."""
    ended = _terminated_state(pod)
    if ended and ended.finished_at:
        return ended.finished_at
    moments = [each.last_transition_time for each in pod.status.conditions if each.last_transition_time]
    return _deleted_at(pod) or max(moments, default=pod.status.start_time)


def _deleted_at(pod: ObservedPod) -> datetime | None:
    """Return when a pod's deletion was requested.

    Its deletionTimestamp is the end of the grace period.
    """
    meta = pod.metadata
    if meta.deletion_timestamp is None:
        return None
    return meta.deletion_timestamp - timedelta(seconds=meta.deletion_grace_period_seconds or 0)


def _join_detail(text: str, detail: str) -> str:
    return (f"{text}: {detail}" if detail else text)[:MAX_TEXT]
