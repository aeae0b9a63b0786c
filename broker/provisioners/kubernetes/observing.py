"""From pods as they were last seen to what the lease's owner is told: pure, so that every case can be held to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from broker.provisioners.base import Observation, Remains, Seen
from broker.provisioners.kubernetes import labels
from broker.provisioners.kubernetes.objects import ContainerStatus, Pod, Terminated, Thing

PATIENCE = timedelta(seconds=120)  # with an image that cannot be pulled: a registry may stumble
UNPLACED = timedelta(seconds=45)  # then the broker's books and the node disagree
HOPELESS = ("InvalidImageName", "ErrImageNeverPull")  # no second try will help
NOT_PULLED = (
    "ErrImagePull",
    "ImagePullBackOff",
    "RegistryUnavailable",
    "ImageInspectError",
    "SignatureValidationFailed",
)
NOT_MADE = ("CreateContainerConfigError", "CreateContainerError", "RunContainerError")
NOT_STARTED = ("StartError", "ContainerCannotRun")
UNDER_WAY = ("", "ContainerCreating", "PodInitializing")
# What kubelets and controllers say of a pod that they ended, in a tenant's words.
TAKEN = {
    "Evicted": "its node ran short and evicted it",
    "Preempting": "it was preempted by another pod",
    "PreemptionByScheduler": "it was preempted by another pod",
    "DeletionByTaintManager": "its node was taken out of service",
    "EvictionByEvictionAPI": "it was evicted by an operator",
    "TerminationByKubelet": "its node ended it",
    "DeletionByPodGC": "its node is gone",
    "NodeLost": "its node is gone",
    "NodeAffinity": "its node refused it after a restart",
    "Terminated": "its node shut down",
    "Shutdown": "its node shut down",
    "UnexpectedAdmissionError": "its node could not hand out the slice",
}
OVER = ("Succeeded", "Failed")
NO_START = "the container cannot be started"
DONE = "its command is done"
AGAIN_SOON_S, AGAIN_LATER_S = 1.0, 5.0
LONGEST = 300


@dataclass(frozen=True, slots=True)
class Usage:
    """When one pod was in use, by the cluster's own clock; `until` is None while it runs."""

    pod_uid: str
    since: datetime
    until: datetime | None


def observe(pods: Iterable[Pod], *, ranks: int, now: datetime) -> Observation:
    """Say how a lease is from the pods of its present generation: the worst of them decides."""
    pods = list(pods)
    newest = _newest(pods)
    looks = [_look(pod, now) for pod in newest]
    seen = _worst(looks, ranks)
    replaced = [pod for pod in pods if pod not in newest or _will_be_replaced(pod)]
    over = [pod for pod in replaced if is_held(pod) and is_over(pod)]
    if (
        seen.seen is Seen.PENDING and not seen.runs
    ):  # what is made anew did not run since what it replaces ended
        ends = [end for pod in over if usage(pod) and (end := _last_proof(pod))]
        seen = replace(seen, last_seen=max(ends, default=None))
    if _does_not_run(seen):
        idle = [pod for pod, look in zip(newest, looks, strict=True) if _does_not_run(look)]
        until = _earliest(_ran_until(pod, pods) for pod in idle)  # from then on it was not whole
        last_seen = seen.last_seen and _earliest([seen.last_seen, until])
        seen = replace(seen, last_seen=last_seen, proven_until=until)
    remains = tuple(map(remains_of, over))
    return replace(seen, remains=remains) if remains else seen


def _does_not_run(seen: Observation) -> bool:
    return seen.seen is Seen.LOST or (seen.seen is Seen.PENDING and not seen.runs)


def _earliest(moments: Iterable[datetime | None]) -> datetime | None:
    return min(filter(None, moments), default=None)


def _ran_until(newest: Pod, pods: Sequence[Pod]) -> datetime | None:
    """Return when a rank ran last, as its cluster now knows it; None while it may run on.

    Whoever looked just before may have seen it run later than that: a kubelet reports an end some time after it, and
    a watch brings it later still.
    """
    if is_over(newest) and not _never_ran(newest):
        return _last_proof(newest)
    if _began(newest) or newest.status.phase == "Running":
        return None
    before = [pod for pod in pods if _rank(pod) == _rank(newest) and pod is not newest]
    if not all(is_over(pod) for pod in before):
        return None
    ends = [end for pod in before if usage(pod) and (end := _last_proof(pod))]
    return max(ends, default=_idle_since(newest))


def _idle_since(pod: Pod) -> datetime | None:
    """Return since when a pod waits to begin: when it was made, what it replaces was over."""
    ready = pod.condition("Ready")
    since = [pod.metadata.creation_timestamp, ready.last_transition_time if ready else None]
    return max(filter(None, since), default=None)


def is_held(pod: Pod) -> bool:
    """Tell whether a pod stays until we let it go."""
    return labels.METERING in pod.metadata.finalizers


def is_over(pod: Pod) -> bool:
    """Tell whether a pod will never run again: it ended, or is gone but for those who hold it."""
    return pod.status.phase in OVER or pod.metadata.deletion_grace_period_seconds == 0


def remains_of(pod: Pod) -> Remains:
    return Remains(pod.metadata.name, pod.metadata.uid)


def gone_since(anchor: Thing | None, pods: Sequence[Pod]) -> datetime | None:
    """Say when a lease ended whose anchor goes or is gone; None while only pods that are ending could tell.

    The anchor's deletion ended it, unless all its pods were over before: slow ends are not charged. Where there is no
    pod, or none that ran, its last one was let go of before: whoever did so knew when it ended.
    """
    deleted = anchor.metadata.deletion_timestamp if anchor else None
    ran = [pod for pod in pods if may_have_run(pod)]
    if not ran:
        return None
    if all(is_over(pod) for pod in ran):
        ends = [moment for pod in ran if (moment := _last_proof(pod))]
        return min(max(ends), deleted or max(ends)) if ends else deleted
    return deleted


def _newest(pods: Iterable[Pod]) -> list[Pod]:
    """Return the present pod of each rank."""
    newest: dict[str, Pod] = {}
    for pod in sorted(pods, key=_age):
        newest[_rank(pod)] = pod
    return list(newest.values())


def _rank(pod: Pod) -> str:
    return pod.metadata.labels.get(labels.RANK, "0")


def _will_be_replaced(pod: Pod) -> bool:
    """Tell whether a pod was taken away from what keeps it running, which makes another once this one is gone."""
    going = pod.metadata.deletion_timestamp is not None
    return going and (pod.spec.restart_policy == "Always" or _never_ran(pod))


def may_have_run(pod: Pod) -> bool:
    return pod.status.phase != "Pending" or _began(pod)


def _never_ran(pod: Pod) -> bool:
    return pod.status.phase == "Pending" and is_over(pod)


def _worst(seen: list[Observation], ranks: int) -> Observation:
    # A command that is done on one node goes on on the others; the lease is over when all are.
    for kind in (Seen.REFUSED, Seen.LOST, Seen.PENDING):
        if found := [each for each in seen if each.seen is kind]:
            return min(found, key=lambda each: each.runs)
    if len(seen) < ranks:
        return Observation(Seen.PENDING, "being made", again_in_s=AGAIN_SOON_S)
    if all(each.seen is Seen.ENDED for each in seen):
        return min(seen, key=lambda each: each.text == DONE)
    return Observation(Seen.READY, "readiness verified")


def usage(pod: Pod) -> Usage | None:
    """Return when a pod's program ran, from its first start to its end; None when it never did."""
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
    # The first start of a program that restarted is no longer in the status: the pod's own is.
    since = min([*starts, *([pod.status.start_time] if _restarted(pod) and pod.status.start_time else [])])
    still = open_ended or (pod.status.phase not in OVER and pod.metadata.deletion_timestamp is None)
    return Usage(pod.metadata.uid, since, None if still else max(over, default=None))


def _restarted(pod: Pod) -> bool:
    return any(status.restart_count > 1 for status in pod.status.container_statuses)


def _age(pod: Pod) -> tuple[str, str]:
    made = pod.metadata.creation_timestamp
    return (made.isoformat() if made else "", pod.metadata.uid)


def _look(pod: Pod, now: datetime) -> Observation:
    if _never_ran(pod):
        return Observation(Seen.PENDING, "being made", again_in_s=AGAIN_SOON_S)
    if is_over(pod):
        return _over(pod)
    if taken := _taken(pod):
        return Observation(Seen.LOST, taken, last_seen=_last_proof(pod))
    if pod.metadata.deletion_timestamp is not None:
        return Observation(Seen.PENDING, "shutting down", again_in_s=AGAIN_SOON_S)
    ready = pod.condition("Ready")
    if pod.status.phase == "Running" and ready is not None and ready.holds:
        return Observation(Seen.READY, "readiness verified")
    if not pod.spec.node_name:
        return _unplaced(pod, now)
    seen = _starting(pod, now)
    if not _began(pod):
        return seen
    return replace(seen, last_seen=now, runs=seen.seen is Seen.PENDING)


def _starting(pod: Pod, now: datetime) -> Observation:
    for status in pod.status.container_statuses:
        if status.state.waiting is not None:
            return _waiting(pod, status, now)
        ended = status.state.terminated
        if ended is not None and ended.reason in NOT_STARTED:
            return Observation(Seen.PENDING, _with(NO_START, ended.message.strip()), again_in_s=AGAIN_SOON_S)
    text = "starting" if pod.status.phase == "Running" else "pulling image"
    return Observation(Seen.PENDING, text, again_in_s=AGAIN_SOON_S)


def _began(pod: Pod) -> bool:
    """Tell whether the program of a pod on its node ever began: the node keeps its slices for it from then on.

    Whether it is ready, or ended and waits to be started again, is its own business.
    """
    return any(
        status.state.running
        or status.state.terminated
        or status.last_state.terminated
        or status.restart_count
        for status in pod.status.container_statuses
    )


def _over(pod: Pod) -> Observation:
    """A pod that will not run again: ended by its node, or done with what it was asked."""
    if pod.status.reason in TAKEN or _taken(pod) or pod.status.reason.startswith("OutOf"):
        why = TAKEN.get(pod.status.reason) or _taken(pod) or "its node had no room for it"
        return Observation(Seen.LOST, _with(why, pod.status.message), last_seen=_last_proof(pod))
    if _will_be_replaced(pod):
        return Observation(Seen.LOST, "its pod was deleted", last_seen=_last_proof(pod))
    ended = _ended(pod)
    if ended is None:
        text = pod.status.message or f"it ended with {pod.status.phase.lower()}"
    elif ended.exit_code == 0:
        text = DONE
    else:
        text = f"its command failed: {_exit(ended)}"
    return Observation(Seen.ENDED, text[:LONGEST], last_seen=_last_proof(pod))


def _unplaced(pod: Pod, now: datetime) -> Observation:
    placed = pod.condition("PodScheduled")
    if placed is None or placed.reason != "Unschedulable":
        return Observation(Seen.PENDING, "waiting for its node", again_in_s=AGAIN_SOON_S)
    since = placed.last_transition_time or pod.metadata.creation_timestamp or now
    if now - since < UNPLACED:
        return Observation(Seen.PENDING, "waiting for its node", again_in_s=AGAIN_LATER_S)
    text = _with("its node does not take it", placed.message)
    return Observation(Seen.LOST, text, last_seen=since)


def _waiting(pod: Pod, status: ContainerStatus, now: datetime) -> Observation:
    waiting = status.state.waiting
    reason, message = (waiting.reason, waiting.message) if waiting else ("", "")
    tried = now - (pod.metadata.creation_timestamp or now)
    if reason in HOPELESS:
        return Observation(Seen.REFUSED, _with(f"the image {status.image} cannot be used", message))
    if reason in NOT_PULLED:
        text = _with(f"the image {status.image} cannot be pulled", message)
        return _patiently(text, tried)
    if reason in NOT_MADE:
        return _patiently(_with("the container cannot be made", message), tried)
    if reason in NOT_STARTED:
        return _patiently(_with(NO_START, message), tried)
    if reason == "CrashLoopBackOff":
        last = status.last_state.terminated
        if last and last.reason in NOT_STARTED:
            return Observation(Seen.PENDING, _with(NO_START, last.message.strip()), again_in_s=AGAIN_LATER_S)
        why = f": {_exit(last)}" if last else ""
        text = f"the program ended {status.restart_count} times{why}; it is started again"
        return Observation(Seen.PENDING, text[:LONGEST], again_in_s=AGAIN_LATER_S)
    if reason not in UNDER_WAY:
        text = _with(f"its container waits ({reason})", message)
        return Observation(Seen.PENDING, text, again_in_s=AGAIN_LATER_S)
    return Observation(Seen.PENDING, "pulling image", again_in_s=AGAIN_SOON_S)


def _patiently(text: str, tried: timedelta) -> Observation:
    if tried >= PATIENCE:
        return Observation(Seen.REFUSED, text)
    return Observation(Seen.PENDING, text, again_in_s=AGAIN_LATER_S)


def _taken(pod: Pod) -> str:
    disrupted = pod.condition("DisruptionTarget")
    if disrupted is None or not disrupted.holds:
        return ""
    return TAKEN.get(disrupted.reason, "the cluster ended it")


def _ended(pod: Pod) -> Terminated | None:
    return next(
        (each.state.terminated for each in pod.status.container_statuses if each.state.terminated), None
    )


def _exit(ended: Terminated) -> str:
    if ended.reason == "OOMKilled":
        return "it took more memory than it has (OOMKilled)"
    return _with(
        f"exit code {ended.exit_code}",
        ended.message.strip().splitlines()[-1] if ended.message.strip() else "",
    )


def _last_proof(pod: Pod) -> datetime | None:
    """Return the last moment at which it is known to have run, by the cluster's clock."""
    ended = _ended(pod)
    if ended and ended.finished_at:
        return ended.finished_at
    moments = [each.last_transition_time for each in pod.status.conditions if each.last_transition_time]
    return _deleted_at(pod) or max(moments, default=pod.status.start_time)


def _deleted_at(pod: Pod) -> datetime | None:
    """Return when a pod was told to go: its deletionTimestamp names until when it may take."""
    meta = pod.metadata
    if meta.deletion_timestamp is None:
        return None
    return meta.deletion_timestamp - timedelta(seconds=meta.deletion_grace_period_seconds or 0)


def _with(text: str, detail: str) -> str:
    return (f"{text}: {detail}" if detail else text)[:LONGEST]
