"""Observed state and status text of a lease, by its pods."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from broker.provisioners.base import ObservedState
from broker.provisioners.kubernetes.client.objects import ClusterObjectHeader, ObservedPod
from broker.provisioners.kubernetes.observe.pod_observation import ended_at, observe_pods, pod_usage

MADE = datetime(2026, 7, 1, 12, tzinfo=UTC)
SOON, LATE = MADE + timedelta(seconds=10), MADE + timedelta(seconds=130)
STARTED, ENDED = MADE + timedelta(seconds=4), MADE + timedelta(seconds=64)
READY = {"type": "Ready", "status": "True"}


def pod(
    phase: str,
    *,
    rank: int = 0,
    node: str = "n1",
    age: int = 0,
    restarts: str = "Always",
    held: bool = True,
    **status: Any,
) -> ObservedPod:
    made = MADE + timedelta(seconds=age)
    meta: dict[str, Any] = {
        "name": f"p{rank}",
        "uid": f"uid-{rank}-{age}",
        "creationTimestamp": made,
        "labels": {"gpubroker.dev/rank": str(rank)},
    }
    if held:
        meta["finalizers"] = ["batch.kubernetes.io/job-tracking", "gpubroker.dev/metering"]
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if name in status:
            meta[name] = status.pop(name)
    body = {
        "metadata": meta,
        "spec": {"nodeName": node, "restartPolicy": restarts},
        "status": {"phase": phase, **status},
    }
    return msgspec.json.decode(msgspec.json.encode(body), type=ObservedPod)


def container(**state: Any) -> list[dict[str, Any]]:
    last = state.pop("last", {})
    restarts = state.pop("restarts", 0)
    return [
        {
            "name": "main",
            "image": "acme/solver:1",
            "restartCount": restarts,
            "state": state,
            "lastState": last,
        }
    ]


def waiting(reason: str, message: str = "", **more: Any) -> ObservedPod:
    return pod("Pending", containerStatuses=container(waiting={"reason": reason, "message": message}, **more))


def state_and_text(*pods: ObservedPod, ranks: int = 1, now: datetime = SOON) -> tuple[ObservedState, str]:
    seen = observe_pods(pods, ranks=ranks, now=now)
    return seen.seen, seen.text


RUNS = pod("Running", conditions=[READY], containerStatuses=container(running={"startedAt": STARTED}))
OVER = {"exitCode": 0, "reason": "Completed", "startedAt": STARTED, "finishedAt": ENDED}


def test_a_ready_pod_is_a_ready_lease() -> None:
    assert state_and_text(RUNS) == (ObservedState.READY, "readiness verified")


def test_a_missing_pod_before_its_creation_is_pending() -> None:
    assert state_and_text() == (ObservedState.PENDING, "being created")


def test_a_gang_is_ready_when_every_rank_is() -> None:
    other = pod("Running", rank=1, conditions=[READY])
    starting = pod("Running", rank=1)
    assert state_and_text(RUNS, ranks=2) == (ObservedState.PENDING, "being created")
    assert state_and_text(RUNS, starting, ranks=2) == (ObservedState.PENDING, "starting")
    assert state_and_text(RUNS, other, ranks=2)[0] is ObservedState.READY


def test_the_newest_pod_determines_the_state_of_its_rank() -> None:
    old = pod("Failed", reason="Evicted")
    assert state_and_text(pod("Running", age=5, conditions=[READY]), old)[0] is ObservedState.READY


def creating(sandbox: str = "", **more: Any) -> ObservedPod:
    conditions = [{"type": "PodReadyToStartContainers", "status": sandbox}] if sandbox else []
    container_statuses = container(waiting={"reason": "ContainerCreating"})
    return pod("Pending", startTime=MADE, conditions=conditions, containerStatuses=container_statuses, **more)


def test_a_container_whose_sandbox_is_ready_is_reported_as_pulling_its_image() -> None:
    assert state_and_text(creating("True")) == (ObservedState.PENDING, "pulling image")


@pytest.mark.parametrize(
    ("started", "after_s", "text"),
    [
        (pod("Pending"), 0, "waiting for its node to accept it"),
        (creating("False"), 2400, "preparing its volumes and network"),
        (creating(), 0, "preparing its container"),
        (creating("True"), 2400, "pulling image or creating its container for 40 minutes"),
        (
            creating("True", initContainerStatuses=container(running={"startedAt": STARTED})),
            0,
            "preparing its container",
        ),
        (pod("Unknown", containerStatuses=container(running={"startedAt": STARTED})), 0, "its node does not report"),
    ],
)
def test_a_start_is_reported_as_what_it_is(started: ObservedPod, after_s: int, text: str) -> None:
    assert state_and_text(started, now=MADE + timedelta(seconds=after_s)) == (ObservedState.PENDING, text)


def test_an_image_pull_failure_is_pending_until_its_timeout() -> None:
    stuck = waiting("ImagePullBackOff", "manifest unknown")
    assert state_and_text(stuck)[0] is ObservedState.PENDING
    assert state_and_text(stuck, now=LATE) == (
        ObservedState.REFUSED,
        "the image acme/solver:1 cannot be pulled: manifest unknown",
    )


def test_an_invalid_image_name_is_refused_at_once() -> None:
    assert state_and_text(waiting("InvalidImageName"))[0] is ObservedState.REFUSED


def test_a_container_that_cannot_be_created_is_refused_after_the_timeout() -> None:
    broken = waiting("CreateContainerConfigError", "image will run as root")
    assert state_and_text(broken)[0] is ObservedState.PENDING
    assert state_and_text(broken, now=LATE)[0] is ObservedState.REFUSED


def test_an_image_without_a_valid_signature_is_refused_after_the_timeout() -> None:
    unsigned = waiting("SignatureValidationFailed", "no signature")
    assert state_and_text(unsigned) == (ObservedState.PENDING, "the image acme/solver:1 cannot be pulled: no signature")
    assert state_and_text(unsigned, now=LATE)[0] is ObservedState.REFUSED


@pytest.mark.parametrize("reason", ["StartError", "ContainerCannotRun"])
def test_a_container_start_error_is_not_reported_as_an_image_pull(reason: str) -> None:
    said = {"exitCode": 128, "reason": reason, "message": 'exec: "trian": not found\n'}
    text = 'the container cannot be started: exec: "trian": not found'
    ended = pod("Running", containerStatuses=container(terminated=said))
    assert state_and_text(ended) == (ObservedState.PENDING, text)
    again = waiting("CrashLoopBackOff", restarts=2, last={"terminated": said})
    assert state_and_text(again, now=LATE) == (ObservedState.PENDING, text)
    assert state_and_text(waiting(reason, "no such file"))[0] is ObservedState.PENDING
    assert state_and_text(waiting(reason, "no such file"), now=LATE)[0] is ObservedState.REFUSED


def test_an_unknown_waiting_reason_of_a_container_is_shown() -> None:
    assert state_and_text(waiting("MoonPhase", "not full")) == (
        ObservedState.PENDING,
        "its container waits (MoonPhase): not full",
    )


def test_a_crash_loop_is_pending_with_its_exit_count() -> None:
    last = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    seen, text = state_and_text(waiting("CrashLoopBackOff", restarts=3, last=last))
    assert seen is ObservedState.PENDING
    assert "exited 3 times: it exceeded its memory limit (OOMKilled)" in text
    assert "exited 0 times" in state_and_text(waiting("CrashLoopBackOff"))[1]


def unplaced(reason: str, **more: Any) -> ObservedPod:
    message = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match Pod's node affinity/selector."
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message, **more}
    return pod("Pending", node="", conditions=[condition])


def test_an_unschedulable_pod_is_lost_after_45_seconds() -> None:
    stuck = unplaced("Unschedulable", lastTransitionTime=MADE)
    assert state_and_text(stuck) == (ObservedState.PENDING, "waiting for its node")
    assert state_and_text(stuck, now=MADE + timedelta(seconds=45)) == (
        ObservedState.LOST,
        "its node does not accept it: not enough cpu is free",
    )


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ("1 node(s) had volume node affinity conflict, 4 node(s) didn't match", "its volume cannot be reached from"),
        ("1 node(s) exceed max volume count", "its node has as many volumes as it may"),
        ("1 node(s) had no available volume zone", "its volume cannot be reached from"),
        ("1 node(s) didn't find available persistent volumes to bind", "no storage fits its volume"),
        ("1 node(s) did not have enough free storage", "there is too little storage"),
    ],
)
def test_a_volume_that_needs_another_node_closes_none(message: str, text: str) -> None:
    stuck = unplaced("Unschedulable", lastTransitionTime=MADE, message=f"0/5 nodes are available: {message}.")
    found = observe_pods([stuck], ranks=1, now=LATE)
    assert (found.seen, found.refused_by_node) == (ObservedState.LOST, False)
    assert found.text.startswith(f"its volume needs another node: {text}")


@pytest.mark.parametrize(
    ("reason", "message", "text"),
    [
        ("Unschedulable", "pod has unbound immediate PersistentVolumeClaims", "its volume is not provisioned yet"),
        (
            "SchedulerError",
            'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded',
            "its volume could not be bound in time",
        ),
        ("Unschedulable", 'persistentvolumeclaim "v-1" not found', "its volume has no storage in its cluster"),
        ("Unschedulable", 'persistentvolumeclaim "v-1" is being deleted', "its volume is being deleted"),
        (
            "Unschedulable",
            "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
            "another pod uses its volume",
        ),
    ],
)
def test_a_pod_whose_volume_is_not_ready_waits(reason: str, message: str, text: str) -> None:
    stuck = unplaced(reason, lastTransitionTime=MADE, message=f"0/5 nodes are available: {message}.")
    assert state_and_text(stuck, now=LATE) == (ObservedState.PENDING, f"waiting for its volume: {text}")


def test_a_pod_not_yet_scheduled_is_pending() -> None:
    assert state_and_text(pod("Pending", node=""), now=LATE) == (ObservedState.PENDING, "waiting for its node")
    seen, text = state_and_text(unplaced("SchedulingGated"), now=LATE)
    assert (seen, text.partition(" (")[0]) == (ObservedState.PENDING, "waiting for the cluster's own queue to admit it")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("PreemptionByScheduler", "preempted"),
        ("DeletionByTaintManager", "drained"),
        ("EvictionByEvictionAPI", "through the Kubernetes API"),
        ("Novelty", "the cluster ended it"),
    ],
)
def test_a_disrupted_pod_is_lost_and_last_seen_at_the_disruption(reason: str, words: str) -> None:
    taken = {"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": ENDED}
    seen = observe_pods([pod("Running", conditions=[READY, taken])], ranks=1, now=LATE)
    assert seen.seen is ObservedState.LOST
    assert words in seen.text
    assert seen.last_seen == ENDED


def test_an_evicted_pod_is_last_seen_when_its_program_ended() -> None:
    ended = container(terminated={**OVER, "exitCode": 137})
    seen = observe_pods([pod("Failed", reason="Evicted", containerStatuses=ended)], ranks=1, now=LATE)
    assert (seen.seen, seen.last_seen) == (ObservedState.LOST, ENDED)


@pytest.mark.parametrize("reason", ["OutOfcpu", "OutOfnvidia.com/gpu", "UnexpectedAdmissionError"])
def test_a_pod_rejected_by_its_kubelet_is_lost(reason: str) -> None:
    assert state_and_text(pod("Failed", reason=reason, message="no room"))[0] is ObservedState.LOST


def test_a_failed_pod_with_a_disruption_is_lost_with_the_reason() -> None:
    taken = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    assert state_and_text(pod("Failed", conditions=[taken])) == (ObservedState.LOST, "it was preempted by another pod")


def test_a_succeeded_command_ends_the_lease_at_its_finish_time() -> None:
    seen = observe_pods([pod("Succeeded", containerStatuses=container(terminated=OVER))], ranks=1, now=LATE)
    assert (seen.seen, seen.text, seen.last_seen) == (ObservedState.ENDED, "its command finished", ENDED)


def test_a_failed_command_ends_with_its_last_message() -> None:
    failed = {**OVER, "exitCode": 2, "reason": "Error", "message": "Traceback\nValueError: no data\n"}
    assert state_and_text(pod("Failed", containerStatuses=container(terminated=failed))) == (
        ObservedState.ENDED,
        "its command failed: exit code 2: ValueError: no data",
    )


def test_a_gang_ends_with_its_last_rank_and_shows_the_failure() -> None:
    done = pod("Succeeded", containerStatuses=container(terminated=OVER))
    failed = pod("Failed", rank=1, message="deadline exceeded")
    assert state_and_text(done, pod("Running", rank=1, conditions=[READY]), ranks=2)[0] is ObservedState.READY
    assert state_and_text(done, failed, ranks=2) == (ObservedState.ENDED, "deadline exceeded")


def test_a_failed_pod_without_a_container_status_shows_the_pods_message() -> None:
    assert state_and_text(pod("Failed", message="deadline exceeded")) == (ObservedState.ENDED, "deadline exceeded")
    assert state_and_text(pod("Failed")) == (ObservedState.ENDED, "it ended as failed")


def test_a_terminating_pod_is_pending() -> None:
    assert state_and_text(pod("Running", conditions=[READY], deletionTimestamp=SOON)) == (
        ObservedState.PENDING,
        "shutting down",
    )


def test_the_worst_pod_determines_the_state_of_a_gang() -> None:
    bad, lost = waiting("InvalidImageName"), pod("Failed", rank=1, reason="Evicted")
    assert state_and_text(RUNS, lost, ranks=2)[0] is ObservedState.LOST
    assert state_and_text(bad, lost, ranks=2)[0] is ObservedState.REFUSED


def test_usage_runs_from_container_start_to_end() -> None:
    over = pod_usage(pod("Succeeded", containerStatuses=container(terminated=OVER)))
    assert over is not None
    assert (over.since, over.until) == (STARTED, ENDED)


def test_usage_continues_while_the_pod_runs() -> None:
    running = pod_usage(RUNS)
    assert running is not None
    assert (running.since, running.until) == (STARTED, None)


def test_usage_continues_between_container_restarts() -> None:
    crashed = container(waiting={"reason": "CrashLoopBackOff"}, last={"terminated": OVER}, restarts=1)
    between = pod_usage(pod("Running", containerStatuses=crashed))
    assert between is not None
    assert between.until is None


def test_a_pod_that_never_ran_has_no_usage() -> None:
    assert pod_usage(waiting("ImagePullBackOff")) is None


def test_usage_of_a_restarted_container_begins_with_its_pod() -> None:
    later = {"startedAt": ENDED}
    often = pod("Running", startTime=MADE, containerStatuses=container(running=later, restarts=5))
    found = pod_usage(often)
    assert found is not None
    assert found.since == MADE


DELETED = {"deletionTimestamp": ENDED + timedelta(seconds=30)}
KILLED = container(terminated={**OVER, "exitCode": 143, "reason": "Error"})


def released_uids(*pods: ObservedPod, ranks: int = 1) -> list[str]:
    return [each.uid for each in observe_pods(pods, ranks=ranks, now=LATE).remains]


def test_a_session_with_a_deleted_pod_is_lost_since_its_program_ended() -> None:
    taken = pod("Failed", containerStatuses=KILLED, **DELETED)
    seen = observe_pods([taken], ranks=1, now=LATE)
    assert (seen.seen, seen.text, seen.last_seen) == (ObservedState.LOST, "its pod no longer exists", ENDED)
    assert released_uids(taken) == ["uid-0-0"], "what keeps it makes no other before this one is let go"


def test_a_completed_batch_pod_is_ended_and_not_released_even_if_deleted() -> None:
    for deleted in ({}, DELETED):
        done = pod("Succeeded", restarts="Never", containerStatuses=container(terminated=OVER), **deleted)
        seen = observe_pods([done], ranks=1, now=LATE)
        assert (seen.seen, seen.last_seen, seen.remains) == (ObservedState.ENDED, ENDED, ())


def test_a_completed_rank_keeps_its_finalizer_while_other_ranks_run() -> None:
    done = pod("Succeeded", restarts="Never", containerStatuses=container(terminated=OVER))
    runs = pod("Running", rank=1, restarts="Never", conditions=[READY])
    assert observe_pods([done, runs], ranks=2, now=LATE).seen is ObservedState.READY
    assert released_uids(done, runs, ranks=2) == []


def test_a_replaced_pod_is_released_unless_it_runs_or_lacks_our_finalizer() -> None:
    new = pod("Running", age=5, conditions=[READY])
    assert released_uids(pod("Failed", **DELETED), new) == ["uid-0-0"]
    assert released_uids(pod("Running", **DELETED), new) == []
    assert released_uids(pod("Failed", held=False, **DELETED), new) == []


def anchor(**meta: Any) -> ClusterObjectHeader:
    body = {"metadata": {"name": "l", **meta}}
    return msgspec.json.decode(msgspec.json.encode(body), type=ClusterObjectHeader)


def test_a_manually_deleted_lease_ended_at_its_deletion_despite_a_slow_shutdown() -> None:
    deleted = anchor(deletionTimestamp=ENDED - timedelta(seconds=20))
    dead, dying = pod("Failed", containerStatuses=KILLED, **DELETED), pod("Running", **DELETED)
    for pods in ([dead], [dying], [dead, dying]):
        assert ended_at(deleted, pods) == ENDED - timedelta(seconds=20)


def test_a_lease_whose_pod_died_before_its_deletion_ended_with_that_pod() -> None:
    deleted = anchor(deletionTimestamp=LATE)
    dead, next_one = pod("Failed", containerStatuses=KILLED, **DELETED), pod("Pending", age=70, node="")
    assert ended_at(deleted, [dead, next_one]) == ENDED
    for pods in ([next_one], []):  # the earlier pod was released: the database has its end
        assert ended_at(deleted, pods) is None


def test_a_completed_gang_ended_with_its_last_rank_not_at_its_deletion() -> None:
    done = pod("Succeeded", containerStatuses=container(terminated=OVER), **DELETED)
    early = {**OVER, "finishedAt": STARTED + timedelta(seconds=9)}
    first = pod("Succeeded", rank=1, containerStatuses=container(terminated=early), **DELETED)
    assert ended_at(anchor(deletionTimestamp=LATE), [first, done]) == ENDED


def test_without_an_anchor_the_end_is_known_only_if_all_pods_ended() -> None:
    dead, dying = pod("Failed", containerStatuses=KILLED, **DELETED), pod("Running", **DELETED)
    assert ended_at(None, [dead]) == ENDED
    assert ended_at(None, [dead, dying]) is None
    assert ended_at(None, []) is None


def test_a_pod_without_an_end_time_uses_the_deletion_time_of_its_anchor() -> None:
    nothing = pod("Failed")
    assert ended_at(anchor(), [nothing]) is None
    assert ended_at(anchor(deletionTimestamp=LATE), [nothing]) == LATE


FORCED = {**DELETED, "deletionGracePeriodSeconds": 0}


def proven_until(*pods: ObservedPod, ranks: int = 1) -> datetime | None:
    return observe_pods(pods, ranks=ranks, now=LATE).proven_until


def test_an_ended_pod_proves_nothing_after_its_end() -> None:
    dead = pod("Failed", containerStatuses=KILLED, **FORCED)
    assert proven_until(dead) == ENDED
    assert proven_until(dead, pod("Pending", age=70, node="")) == ENDED
    assert proven_until(RUNS) is None
    assert proven_until(pod("Running", containerStatuses=container(running={"startedAt": STARTED}))) is None


def test_a_terminating_pod_sets_no_end_of_proof() -> None:
    runs = container(running={"startedAt": STARTED})
    dying = pod("Running", containerStatuses=runs, **DELETED)
    assert proven_until(dying) is None
    assert proven_until(dying, pod("Pending", age=70, node="")) is None


def test_a_pending_pod_proves_that_nothing_ran_since_its_creation() -> None:
    assert proven_until(pod("Pending", age=70, node="")) == MADE + timedelta(seconds=70)
    never = pod("Pending", node="", **FORCED)
    assert proven_until(never) == MADE
    assert proven_until(never, pod("Pending", age=70, node="")) == MADE + timedelta(seconds=70)


def test_a_pod_that_is_pending_again_ran_until_it_lost_readiness() -> None:
    since = {"type": "Ready", "status": "False", "lastTransitionTime": ENDED}
    assert proven_until(pod("Pending", conditions=[since])) == ENDED


def test_a_gang_is_proven_until_its_first_rank_ended() -> None:
    dead = pod("Failed", containerStatuses=KILLED, **FORCED)
    made_later = pod("Pending", rank=1, age=70, node="")
    assert proven_until(dead, made_later, ranks=2) == ENDED
    runs = pod("Running", rank=1, conditions=[READY])
    assert proven_until(dead, runs, ranks=2) == ENDED
    done = pod("Succeeded", restarts="Never", containerStatuses=container(terminated=OVER))
    assert proven_until(done, runs, ranks=2) is None
    evicted = pod("Failed", reason="Evicted", rank=1, containerStatuses=container(terminated=OVER))
    early = container(terminated={**OVER, "finishedAt": STARTED})
    gone = pod("Failed", reason="Evicted", rank=2, containerStatuses=early)
    seen = observe_pods([evicted, gone], ranks=3, now=LATE)
    assert (seen.last_seen, seen.proven_until) == (STARTED, STARTED)


def test_an_evicted_pod_is_last_seen_at_its_deletion_minus_the_grace_period() -> None:
    taken = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    dying = pod("Running", conditions=[READY, taken], **DELETED, deletionGracePeriodSeconds=30)
    assert observe_pods([dying], ranks=1, now=LATE).last_seen == ENDED


def test_a_pod_deleted_before_it_ran_is_released_and_created_again() -> None:
    for restarts in ("Always", "Never"):
        waits = pod("Pending", restarts=restarts, node="", **FORCED)
        seen = observe_pods([waits], ranks=1, now=LATE)
        assert (seen.seen, seen.text) == (ObservedState.PENDING, "being created")
        assert [each.uid for each in seen.remains] == ["uid-0-0"]


def test_a_pod_held_only_by_our_finalizer_is_lost_or_ended() -> None:
    forced = pod("Running", containerStatuses=container(running={"startedAt": STARTED}), **FORCED)
    seen = observe_pods([forced], ranks=1, now=LATE)
    assert (seen.seen, seen.last_seen) == (ObservedState.LOST, DELETED["deletionTimestamp"])
    assert released_uids(forced) == ["uid-0-0"]
    assert ended_at(None, [forced]) == DELETED["deletionTimestamp"]
    batch = pod("Running", restarts="Never", **FORCED)
    assert observe_pods([batch], ranks=1, now=LATE).seen is ObservedState.ENDED


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"running": {"startedAt": STARTED}}, "starting"),
        ({"waiting": {"reason": "CrashLoopBackOff"}, "restarts": 3}, "the program exited 3 times"),
        ({"terminated": {"exitCode": 1, "startedAt": STARTED, "finishedAt": ENDED}}, "starting"),
        ({"waiting": {"reason": "ImagePullBackOff"}, "restarts": 1}, "cannot be pulled"),
    ],
)
def test_a_started_program_counts_as_running_although_not_ready(state: dict[str, Any], words: str) -> None:
    seen = observe_pods([pod("Running", containerStatuses=container(**state))], ranks=1, now=SOON)
    assert (seen.seen, seen.running, seen.last_seen) == (ObservedState.PENDING, True, SOON)
    assert words in seen.text


def test_a_program_that_never_started_is_not_last_seen() -> None:
    for each in (waiting("ContainerCreating"), pod("Pending"), unplaced("Unschedulable")):
        seen = observe_pods([each], ranks=1, now=SOON)
        assert (seen.seen, seen.running, seen.last_seen) == (ObservedState.PENDING, False, None)


def test_a_restarted_program_with_a_missing_image_is_refused_and_last_seen_now() -> None:
    gone = container(waiting={"reason": "ErrImageNeverPull"}, restarts=1)
    seen = observe_pods([pod("Running", containerStatuses=gone)], ranks=1, now=LATE)
    assert (seen.seen, seen.running, seen.last_seen) == (ObservedState.REFUSED, False, LATE)


def test_a_gang_with_a_pending_rank_is_not_running() -> None:
    ill = pod("Running", containerStatuses=container(running={"startedAt": STARTED}))
    seen = observe_pods([ill, pod("Pending", rank=1)], ranks=2, now=SOON)
    assert (seen.seen, seen.running, seen.last_seen) == (ObservedState.PENDING, False, None)


def test_a_pending_replacement_pod_is_last_seen_at_the_end_of_the_replaced_pod() -> None:
    ended = container(terminated={"exitCode": 0, "startedAt": STARTED, "finishedAt": ENDED})
    old = pod("Succeeded", containerStatuses=ended, deletionTimestamp=ENDED, deletionGracePeriodSeconds=0)
    seen = observe_pods([old, pod("Pending", age=70)], ranks=1, now=LATE)
    assert (seen.seen, seen.running, seen.last_seen) == (ObservedState.PENDING, False, ENDED)
    never = pod("Pending", deletionTimestamp=ENDED, deletionGracePeriodSeconds=0)
    assert observe_pods([never, pod("Pending", age=70)], ranks=1, now=LATE).last_seen is None


@pytest.mark.parametrize("reason", ["Unknown", "ContainerStatusUnknown"])
def test_a_container_that_waits_after_a_reboot_does_not_run(reason: str) -> None:
    died = {"terminated": {"exitCode": 255, "reason": reason, "startedAt": STARTED, "finishedAt": ENDED}}
    waits = pod("Running", containerStatuses=container(waiting={"reason": "ContainerCreating"}, last=died, restarts=1))
    found = observe_pods([waits], ranks=1, now=LATE)
    assert (found.seen, found.running, found.last_seen) == (ObservedState.PENDING, False, None)


def test_a_program_that_fails_after_a_reboot_runs() -> None:
    failed = {"terminated": {"exitCode": 1, "reason": "Error", "startedAt": STARTED, "finishedAt": ENDED}}
    waits = pod("Running", containerStatuses=container(waiting={"reason": "CrashLoopBackOff"}, last=failed, restarts=2))
    assert observe_pods([waits], ranks=1, now=LATE).running


def test_a_rejected_pod_of_a_controller_will_restart() -> None:
    rejected = pod("Failed", reason="UnexpectedAdmissionError", message="no healthy devices present")
    found = observe_pods([rejected], ranks=1, now=LATE)
    assert (found.seen, found.will_restart) == (ObservedState.LOST, True)
    batch = pod("Failed", restarts="Never", reason="UnexpectedAdmissionError", message="no healthy devices present")
    assert not observe_pods([batch], ranks=1, now=LATE).will_restart
