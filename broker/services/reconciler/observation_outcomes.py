"""State transitions of a lease in response to a cluster observation.

One table names the handler of each lease state and kind of observation. Choosing a handler only reads;
handlers only touch the database, in the tenant's transaction. The caller asked the cluster before, and
StaleLease tells it that the row has changed since it was loaded.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product

from django.conf import settings
from django.db.models import F

from broker.domain.lifecycle.states import EndReason, LeaseCondition, LeaseState
from broker.domain.workloads.templates import BATCH
from broker.models import Lease, StaleLease
from broker.provisioners.base import Observation, ObservedState
from broker.services.inventory import hardware
from broker.services.leases import abandoned_placements, relocation_steps
from broker.services.leases.lifecycle import command_retries, extension, node_outages, preemption, termination
from broker.services.queue import lease_placement
from broker.services.reconciler import missing_leases
from broker.services.reconciler.observation_kinds import (
    LOST_AFTER,
    ObservationKind,
    classify_observation,
    was_ever_answered,
)
from broker.services.repartition import repartition_reconciler
from broker.services.volumes import volume_mounts
from ports import outbox
from tenants.services import projects

RECHECK_AFTER = timedelta(seconds=10)  # and the sweep runs every five: nothing under way waits over 15 s
ACTIVE_CHECK_INTERVAL = timedelta(minutes=4)  # how often an active lease is checked
DEGRADED_CHECK_INTERVAL = timedelta(minutes=1)  # how often one whose program is not ready is checked
MAX_CLOSED_NODES = 2  # that one lease may close for all
MAX_PLACEMENTS = 12  # placements tried before the lease is given up
UNREACHABLE_SINCE = "unreachable_since"  # key of a lease's progress, from the silence of its node until it runs again
S, K = LeaseState, ObservationKind
ObservationHandler = Callable[[Lease, Observation, datetime], None]


def apply_observation(lease: Lease, observation: Observation, now: datetime) -> None:
    if lease.state == S.ACTIVE:
        observation = _dated_at_first_loss(lease, observation)
        _reduce_last_seen(lease, observation)
        ends = observation.seen is ObservedState.LOST or _awaits_replacement(observation)
        if observation.seen is ObservedState.ENDED or (ends and not _was_unreachable(lease)):
            _extend_last_seen(lease, observation, now)
        if _end_overlong_run(lease, observation, now):
            return
    choose_handler(lease, observation, now)(lease, observation, now)


def _dated_at_first_loss(lease: Lease, observation: Observation) -> Observation:
    """Date an undated loss to the observation that first showed it."""
    if observation.undated and lease.seen_at and LeaseCondition.UNREACHABLE in lease.conditions:
        return replace(observation, last_seen=lease.seen_at)
    return observation


def _end_overlong_run(lease: Lease, observation: Observation, now: datetime) -> bool:
    """End a batch run that reached its time limit; return whether it did."""
    limit = lease.run_ends_at
    runs = observation.seen is ObservedState.READY or observation.running
    if limit is None or not runs or now < limit or termination.is_over(lease, now):
        return False
    text = f"it reached its time limit of {lease.attempt_limit_s} s per run"
    if not command_retries.end_run(lease, text=text, ended_at=limit, now=now):
        termination.release_lease(lease, reason=EndReason.BY_TENANT, now=now, at=limit, cause=text)
    return True


def choose_handler(lease: Lease, observation: Observation, now: datetime) -> ObservationHandler:
    """Return the handler of an observation; reads nothing but its arguments."""
    return HANDLERS[S(lease.state), classify_observation(lease, observation, now)]


def _reduce_last_seen(lease: Lease, observation: Observation) -> None:
    """Correct the last observation time when the cluster reports an earlier end.

    A worker that looked between the end and the moment the cluster reported it took the old state for proof.
    """
    until = observation.proven_until or (observation.last_seen if observation.seen is ObservedState.LOST else None)
    if (
        until is None
        or lease.seen_at is None
        or lease.seen_at <= until
        or repartition_reconciler.is_node_repartitioning(lease)
    ):
        return
    lease.seen_at = max(until, lease.state_since)
    _update_unchanged(lease, seen_at=lease.seen_at)


def _extend_last_seen(lease: Lease, observation: Observation, now: datetime) -> None:
    """Extend the last observation time to the end that the cluster reports.

    The cluster may be marked unreachable until the next probe, though it answers by now.
    """
    until = min(observation.last_seen or lease.state_since, now)
    if until > (lease.seen_at or lease.state_since):
        lease.seen_at = until
        _update_unchanged(lease, seen_at=until)


def _awaits_replacement(observation: Observation) -> bool:
    """Return whether the old pod has ended and its replacement does not run yet."""
    return observation.seen is ObservedState.PENDING and not observation.running


def give_up_provisioning(lease: Lease, cause: str, now: datetime) -> None:
    termination.release_lease(lease, reason=EndReason.PROVISION_TIMEOUT, now=now, cause=cause)


def give_up_crashing(lease: Lease, now: datetime) -> None:
    """End a lease that crashes its workers, or return a relocated one.

    A relocated lease goes back to its earlier GPU, where it crashed nobody.
    """
    cause = f"{lease.unfinished_claims} workers in a row crashed on it"
    if not relocation_steps.return_to_source(lease, why=cause, now=now):
        give_up_provisioning(lease, cause, now)


def give_up_without_secrets(lease: Lease, cause: str, now: datetime) -> None:
    """End a lease whose secret cannot be read; return a relocated one, which has it."""
    if not relocation_steps.return_to_source(lease, why=cause, now=now):
        termination.release_lease(lease, reason=EndReason.SPEC_REFUSED, now=now, cause=cause)


def activate_lease(lease: Lease, observation: Observation, now: datetime) -> None:
    at = max(now.replace(microsecond=0), lease.state_since)  # as the ledger will have it
    ends_at = extension.end_when_active_from(lease, at)
    lease.transition(
        S.ACTIVE,
        now=now,
        cause=observation.text,
        active_at=at,
        seen_at=now,
        ends_at=ends_at,
        claimed_until=None,
        due_at=min(ends_at, now + ACTIVE_CHECK_INTERVAL, observation.ends_at or ends_at),
        progress={},
        unfinished_claims=0,
    )
    if observation.ends_at:
        after_s = max((observation.ends_at - now).total_seconds(), 0)
        outbox.enqueue("broker.reconcile_lease", lease.pk, tenant_id=lease.tenant_id, now=now, after_s=after_s)
    volume_mounts.record_first_use(lease, now=now)
    relocation_steps.finish_relocation(lease, now=now)
    extension.enqueue_check_at_end(ends_at, lease, now=now)
    if lease.run_ends_at:
        extension.enqueue_check_at_end(lease.run_ends_at, lease, now=now)


def _handle_refusal(lease: Lease, observation: Observation, now: datetime) -> None:
    if _return_to_source(lease, observation, now) or _try_another_cluster(lease, observation.text, now):
        return
    termination.release_lease(lease, reason=EndReason.SPEC_REFUSED, now=now, cause=observation.text)


def _place_elsewhere(lease: Lease, observation: Observation, now: datetime) -> None:
    """Give up the placement of a lease that was never active there."""
    if observation.refused_by_node:
        _close_refusing_node(lease, observation, now)
    if not _return_to_source(lease, observation, now):
        _requeue_lease(lease, observation.text, now)


def _close_refusing_node(lease: Lease, observation: Observation, now: datetime) -> None:
    """Close the node that refused a lease, if the lease has only one.

    A lease that further nodes refuse is the likely reason itself.
    """
    if abandoned_placements.count_abandoned(lease) >= MAX_CLOSED_NODES:
        return
    held = lease.allocations.filter(generation=lease.generation, released_at=None)
    nodes = set(held.values_list("gpu__node", flat=True))
    if len(nodes) == 1:
        hardware.close_refusing_node(nodes.pop(), reason=observation.text, now=now)


def _handle_provision_timeout(lease: Lease, observation: Observation, now: datetime) -> None:
    if _return_to_source(lease, observation, now):
        return
    cause = f"not ready within {settings.PROVISION_TIMEOUT_S} s: {observation.text}"
    # An unreachable cluster may still start what it was sent.
    if not observation.answered or not _try_another_cluster(lease, cause, now):
        give_up_provisioning(lease, cause, now)


def _return_to_source(lease: Lease, observation: Observation, now: datetime) -> bool:
    """Return a relocated lease to its earlier GPU; return False if it cannot."""
    return relocation_steps.return_to_source(lease, why=observation.text or "not ready in time", now=now)


def _try_another_cluster(lease: Lease, cause: str, now: datetime) -> bool:
    """Requeue the lease if another cluster has room; return False if none has."""
    if not lease_placement.has_room_elsewhere(lease):
        return False
    _requeue_lease(lease, cause, now)
    return True


def _requeue_lease(lease: Lease, cause: str, now: datetime) -> None:
    """Queue a lease again that was never active, so nothing was charged.

    Its earlier placement stays held until its cluster proves it empty.
    """
    if (places := abandoned_placements.count_abandoned(lease)) >= MAX_PLACEMENTS:
        give_up_provisioning(lease, f"{places} slices rejected it; the last reason: {cause}", now)
        return
    if not projects.is_open(lease.project_id):
        cause = f"its project was archived before it started: {cause}"
        termination.release_lease(lease, reason=EndReason.BY_TENANT, now=now, cause=cause)
        return
    lease.transition(
        S.QUEUED, now=now, cause=cause, claimed_until=None, due_at=lease.end_date, progress={}, unfinished_claims=0
    )
    abandoned_placements.abandon_placements(lease, now=now)
    outbox.enqueue("broker.reconcile_lease", lease.pk, tenant_id=lease.tenant_id, now=now)


def _end_with_program(lease: Lease, observation: Observation, now: datetime) -> None:
    """End a lease whose program has ended, unless it is run again."""
    ended_at, code = observation.last_seen or now, observation.exit_code
    if command_retries.end_run(lease, text=observation.text, ended_at=ended_at, exit_code=code, now=now):
        return
    if observation.exit_code is not None:
        _update_unchanged(lease, exit_code=observation.exit_code)
        lease.exit_code = observation.exit_code
    termination.release_lease(
        lease, reason=EndReason.BY_TENANT, now=now, at=observation.last_seen, cause=observation.text
    )


def _expire_lease(lease: Lease, observation: Observation, now: datetime) -> None:
    """End a lease whose time is up, or at its last observation if lost before.

    An unreachable cluster does not delay the end: the lease is charged to its last observation, and keeps
    its placements until the cluster proves that it is gone.
    """
    since = observation.last_seen or lease.seen_at or now
    if observation.seen == ObservedState.PENDING and not observation.running:
        preemption.end_at_term(lease, now=now, at=since)
        return
    if observation.seen in (ObservedState.READY, ObservedState.PENDING) and lease.conditions:  # it ran all along
        _clear_conditions(lease, observation, now)
        lease.conditions = {}
    if observation.seen in (ObservedState.LOST, ObservedState.GONE, ObservedState.REFUSED) and since < (
        lease.must_end_at or now
    ):
        _extend_last_seen(lease, observation, now)
        cause = observation.text or "its pod no longer exists"
        termination.release_lease(lease, reason=EndReason.DEVICE_LOST, now=now, at=since, cause=cause)
    else:
        preemption.end_at_term(lease, now=now, at=lease.must_end_at)


def _mark_degraded(lease: Lease, observation: Observation, now: datetime) -> None:
    """Mark the lease as degraded: its program is not ready.

    It holds its GPU and is charged all the same.
    """
    _record_end_of_outage(lease, now)
    seen_at = max(observation.last_seen or now, lease.seen_at or lease.state_since)
    ill = {str(LeaseCondition.DEGRADED): observation.text}
    changes: dict[str, object] = {
        "due_at": min(lease.must_end_at or now + DEGRADED_CHECK_INTERVAL, now + DEGRADED_CHECK_INTERVAL),
        "seen_at": seen_at,
    }
    if lease.conditions != ill:
        changes["conditions"] = ill
    if _was_unreachable(lease):
        changes["progress"] = {}
    # An unobserved time proves nothing, so degradation starts anew; rows of older releases have no start.
    if observation.device_doubt:  # its program may well be at work: it is not idle
        changes["degraded_since"] = None
    elif lease.degraded_since is None or set(lease.conditions) != {str(LeaseCondition.DEGRADED)}:
        changes["degraded_since"] = now
    _update_unchanged(lease, **changes)
    _enqueue_early_check(lease, observation, now)


def _handle_not_running(lease: Lease, observation: Observation, now: datetime) -> None:
    """Handle an active lease that does not run now; check again soon.

    A silence longer than the usual check interval becomes a condition, and an end within it is dated to its
    start. If the cluster says that nothing of it runs, the lease is treated as lost.
    """
    if observation.last_seen:
        last_seen = max(observation.last_seen, lease.seen_at or lease.state_since)
        _handle_node_loss(lease, replace(observation, last_seen=last_seen), now)
        return
    if (
        observation.answered
        and LeaseCondition.UNREACHABLE in lease.conditions
        and lease.seen_at
        and now - lease.seen_at > LOST_AFTER
        and not _may_return(lease, observation, lease.seen_at, now)
    ):
        cause = f"it no longer ran: {observation.text}"
        if command_retries.restart_lost_run(lease, text=cause, ended_at=lease.seen_at, now=now):
            return
        termination.release_lease(lease, reason=EndReason.DEVICE_LOST, now=now, at=lease.seen_at, cause=cause)
        return
    if (
        lease.seen_at
        and now - lease.seen_at > ACTIVE_CHECK_INTERVAL + LOST_AFTER
        and LeaseCondition.UNREACHABLE not in lease.conditions
    ):
        sentence = f"{observation.text}; last seen at {lease.seen_at:%H:%M:%S} UTC"
        _update_unchanged(
            lease,
            conditions={**lease.conditions, str(LeaseCondition.UNREACHABLE): sentence},
            due_at=now + RECHECK_AFTER,
        )
    else:
        schedule_check(lease, observation, now)


def _handle_node_loss(lease: Lease, observation: Observation, now: datetime) -> None:
    if repartition_reconciler.is_node_repartitioning(
        lease
    ):  # its GPUs are not reported during a repartition, which loses nothing
        cut = {str(LeaseCondition.REPARTITIONING): "Its node is being repartitioned and reports no GPUs meanwhile."}
        new_fields = {} if cut.items() <= lease.conditions.items() else {"conditions": {**lease.conditions, **cut}}
        _update_unchanged(lease, due_at=now + RECHECK_AFTER, **new_fields)
        return
    since = observation.last_seen or lease.seen_at or now
    if _was_unreachable(lease) and lease.seen_at:  # what its pods report of the outage proves nothing
        since = min(since, lease.seen_at)
    if now - since > LOST_AFTER and not _may_return(lease, observation, since, now):
        if command_retries.restart_lost_run(lease, text=observation.text, ended_at=since, now=now):
            return
        termination.release_lease(lease, reason=EndReason.DEVICE_LOST, now=now, at=since, cause=observation.text)
        return
    changes: dict[str, object] = {"due_at": now + RECHECK_AFTER}
    if lease.seen_at is None or lease.seen_at < since:
        changes["seen_at"] = since
    sentence = _loss_sentence(lease, observation, since)
    known = lease.conditions.get(LeaseCondition.UNREACHABLE)
    if known is None or (known != sentence and (observation.node_unreachable or _was_unreachable(lease))):
        changes["conditions"] = {**lease.conditions, str(LeaseCondition.UNREACHABLE): sentence}
    if observation.node_unreachable and not _was_unreachable(lease):
        changes["progress"] = {"text": observation.text, "percent": None, UNREACHABLE_SINCE: since.isoformat()}
    _update_unchanged(lease, **changes)


def _loss_sentence(lease: Lease, observation: Observation, since: datetime) -> str:
    """Return what a tenant reads of a loss, and what follows."""
    limit = timedelta(seconds=settings.NODE_UNREACHABLE_TIMEOUT_S)
    if observation.node_unreachable:
        runs_again = lease.workload == BATCH.name and lease.retries
        what = "the command is run again elsewhere" if runs_again else "the lease ends"
        return (
            f"{observation.text} since {since:%H:%M:%S} UTC. Nothing has been charged since then. If the node is not"
            f" back by {since + limit:%H:%M:%S} UTC, {what}."
        )
    if _was_unreachable(lease):
        return (
            f"Its node is back, and its program starts again ({observation.text}). Nothing has been"
            f" charged since {since:%H:%M:%S} UTC. If it does not run by {since + 2 * limit:%H:%M:%S} UTC, the lease"
            " ends."
        )
    return f"{observation.text} at {since:%H:%M:%S} UTC"


def _was_unreachable(lease: Lease) -> bool:
    """Return whether the lease has not run since its node was silent."""
    return UNREACHABLE_SINCE in lease.progress


def _may_return(lease: Lease, observation: Observation, since: datetime, now: datetime) -> bool:
    """Return whether to wait longer for a lease whose node is or was silent.

    A node that reboots is back within minutes, and its kubelet or a controller starts the program again.
    """
    limit = timedelta(seconds=settings.NODE_UNREACHABLE_TIMEOUT_S)
    if observation.node_unreachable:
        return now - since <= limit
    restarts = observation.will_restart or _awaits_replacement(observation)
    return restarts and _was_unreachable(lease) and now - since <= 2 * limit


def _record_end_of_outage(lease: Lease, now: datetime) -> None:
    """Record an outage of the node from which a lease has returned."""
    if _was_unreachable(lease) and lease.seen_at and now - lease.seen_at > LOST_AFTER:
        node_outages.record_outage(lease, now=now)


def _handle_missing_pod(lease: Lease, observation: Observation, now: datetime) -> None:
    if not missing_leases.must_check_again(lease, now=now):  # a single check may be mistaken
        _end_as_lost(lease, observation, now)


def _end_as_lost(lease: Lease, observation: Observation, now: datetime) -> None:
    _extend_last_seen(lease, observation, now)
    cause = observation.text or "its pod no longer exists"
    since = observation.last_seen or lease.seen_at
    if command_retries.restart_lost_run(lease, text=cause, ended_at=since or now, now=now):
        return
    termination.release_lease(lease, reason=EndReason.DEVICE_LOST, now=now, at=since, cause=cause)


def _clear_conditions(lease: Lease, observation: Observation, now: datetime) -> None:
    _record_end_of_outage(lease, now)
    seen_at = max(observation.last_seen or now, lease.seen_at or lease.state_since)
    changes: dict[str, object] = {
        "due_at": min(lease.must_end_at or now + ACTIVE_CHECK_INTERVAL, now + ACTIVE_CHECK_INTERVAL),
        "seen_at": seen_at,
    }
    for field in ("conditions", "progress"):
        if getattr(lease, field):
            changes[field] = {}
    if lease.degraded_since is not None:
        changes["degraded_since"] = None
    _update_unchanged(lease, **changes)


def _finish_stop(lease: Lease, _observation: Observation, now: datetime) -> None:
    """Stop a lease whose pod is proven gone; others may still write to volumes."""
    if not relocation_steps.start_at_target(lease, now=now) and not command_retries.queue_again(lease, now=now):
        preemption.finish_stop(lease, now=now)


def _handle_node_loss_while_stopping(lease: Lease, observation: Observation, now: datetime) -> None:
    lost_for_good = _needs_no_observation(lease, now)
    if lost_for_good and (
        relocation_steps.start_at_target_unproven(lease, now=now)
        or command_retries.queue_again(lease, now=now, proven_gone=False)
    ):
        return
    if lost_for_good and preemption.is_preempted(lease):
        preemption.finish_stop(lease, now=now)
    else:
        schedule_check(lease, observation, now)


def _finish_release(lease: Lease, _observation: Observation, now: datetime) -> None:
    termination.finish_release(lease, now=now)


def _handle_node_loss_while_releasing(lease: Lease, observation: Observation, now: datetime) -> None:
    if _needs_no_observation(lease, now):
        termination.finish_release(lease, now=now)
    else:
        schedule_check(lease, observation, now)


def _needs_no_observation(lease: Lease, now: datetime) -> bool:
    """Return whether a lost lease writes to no volume and was waited for long enough."""
    return lease.volume_id is None and now - lease.state_since > LOST_AFTER


def schedule_check(lease: Lease, observation: Observation, now: datetime) -> None:
    changes: dict[str, object] = {"due_at": now + RECHECK_AFTER}
    progress: dict[str, object] = {}
    if observation.text:
        progress = {"text": observation.text, "percent": observation.percent}
    if not observation.answered and not was_ever_answered(lease):
        progress["answered"] = False
    if _was_unreachable(lease):
        progress[UNREACHABLE_SINCE] = lease.progress[UNREACHABLE_SINCE]
    if progress != lease.progress:
        changes["progress"] = progress
    _update_unchanged(lease, **changes)
    _enqueue_early_check(lease, observation, now)


def _enqueue_early_check(lease: Lease, observation: Observation, now: datetime) -> None:
    if observation.again_in_s < RECHECK_AFTER.total_seconds():
        outbox.enqueue(
            "broker.reconcile_lease", lease.pk, tenant_id=lease.tenant_id, now=now, after_s=observation.again_in_s
        )


def _update_unchanged(lease: Lease, **changes: object) -> None:
    """Update the row if it is unchanged since it was loaded, else raise StaleLease.

    Changes a tenant can see raise its version.
    """
    if changes.keys() & {"conditions", "progress"}:
        changes["version"] = F("version") + 1
    if not Lease.objects.filter(pk=lease.pk, state=lease.state, seq=lease.seq).update(**changes):
        raise StaleLease(lease.pk)


# Whatever is not named here is checked again later.
REACTIONS: dict[tuple[LeaseState, ObservationKind], ObservationHandler] = {
    (S.PROVISIONING, K.READY): activate_lease,
    (S.PROVISIONING, K.REFUSED): _handle_refusal,
    (S.PROVISIONING, K.LOST): _place_elsewhere,
    (S.PROVISIONING, K.UNANSWERED): _place_elsewhere,
    (S.PROVISIONING, K.OVERDUE): _handle_provision_timeout,
    (S.PROVISIONING, K.ENDED): _end_with_program,
    (S.ACTIVE, K.READY): _clear_conditions,
    (S.ACTIVE, K.NOT_READY): _mark_degraded,
    (S.ACTIVE, K.NOT_RUNNING): _handle_not_running,
    (S.ACTIVE, K.REFUSED): _end_as_lost,
    (S.ACTIVE, K.LOST): _handle_node_loss,
    (S.ACTIVE, K.GONE): _handle_missing_pod,
    (S.ACTIVE, K.OVERDUE): _expire_lease,
    (S.ACTIVE, K.ENDED): _end_with_program,
    (S.STOPPING, K.GONE): _finish_stop,
    (S.STOPPING, K.LOST): _handle_node_loss_while_stopping,
    (S.RELEASING, K.GONE): _finish_release,
    (S.RELEASING, K.LOST): _handle_node_loss_while_releasing,
}
HANDLERS = {pair: REACTIONS.get(pair, schedule_check) for pair in product(S, K)}
