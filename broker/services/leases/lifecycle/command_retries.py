"""Retries of batch commands: release the GPU, wait, and queue again.

Waiting is free, because nothing is held. A run that the provider lost starts again at once and is not
counted. The lease keeps its quota and its holds, as they were taken for its whole duration.
"""

from datetime import datetime
from typing import Any

from broker.domain.lifecycle.command_retries import MAX_LOSSES, MIN_LEFT_S, backoff_after, parse_exit_code
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.domain.workloads.templates import BATCH
from broker.models import Allocation, Lease, LeaseAttempt
from broker.services.leases import abandoned_placements, attempt_records
from broker.services.leases.lifecycle import stop_and_start
from broker.services.placement.available_capacity import pool_of
from ports import outbox
from tenants.services import projects
from tenants.services.actors import SYSTEM

S = LeaseState


def end_run(lease: Lease, *, text: str, ended_at: datetime, now: datetime, exit_code: int | None = None) -> bool:
    """Record the end of a command; return whether it is run again.

    Where its exit code is not given, it is read from the text.
    """
    if lease.workload != BATCH.name:
        return False
    exit_code = parse_exit_code(text) if exit_code is None else exit_code
    failed = exit_code != 0
    retry_at = None
    if failed and lease.attempt <= lease.retries and _has_time_left(lease, now) and projects.is_open(lease.project_id):
        retry_at = max(now, ended_at + backoff_after(lease.attempt))
    attempt_records.record_attempt(lease, ended_at=ended_at, exit_code=exit_code, text=text, retry_at=retry_at)
    if retry_at is None:
        return False
    cause = f"run {lease.attempt} of {lease.retries + 1}: {text}; run again at {retry_at:%H:%M:%S} UTC"
    _release_gpu(lease, cause=cause, ended_at=ended_at, now=now)
    return True


def restart_lost_run(lease: Lease, *, text: str, ended_at: datetime, now: datetime) -> bool:
    """Queue a batch lease again after a lost run; return whether it was.

    Only where retries were asked for: a command that must not run twice has none.
    """
    if lease.workload != BATCH.name or not lease.retries or lease.state != S.ACTIVE:
        return False
    if attempt_records.count_losses(lease) >= MAX_LOSSES or not _has_time_left(lease, now):
        return False
    if not projects.is_open(lease.project_id):
        return False
    attempt_records.record_attempt(lease, ended_at=ended_at, exit_code=None, text=text, counted=False, retry_at=now)
    cause = f"run {lease.attempt} was interrupted: {text}; it is run again"
    _release_gpu(lease, cause=cause, ended_at=ended_at, now=now)
    return True


def queue_again(lease: Lease, *, now: datetime, proven_gone: bool = True) -> bool:
    """Queue a lease for its next run once nothing of the last one is left.

    Returns False where none follows. Without proof its placement stays held until its cluster proves that
    it is empty.
    """
    run = attempt_records.find_pending_retry(lease) if lease.state == S.STOPPING else None
    if run is None:
        return False
    lease.transition(
        S.STOPPED,
        S.QUEUED,
        now=now,
        cause="queued for its next run",
        conditions={},
        progress={},
        **_next_run(lease, run, now),
    )
    if proven_gone:
        left = Allocation.objects.filter(lease=lease, released_at=None, leaving_since=None)
        left.update(released_at=max(now, lease.state_since))
        outbox.enqueue("broker.run_queue", "|".join(pool_of(lease.offering)), now=now)
    else:
        abandoned_placements.abandon_placements(lease, now=now)
    _enqueue_next_run(lease, now)
    return True


def _release_gpu(lease: Lease, *, cause: str, ended_at: datetime, now: datetime) -> None:
    """Remove a run from its GPU, or queue one that was never active."""
    if lease.state == S.ACTIVE:
        stop_and_start.pause_lease(lease, reason=EndReason.NONE, cause=cause, actor=SYSTEM, now=now, at=ended_at)
        return
    run = attempt_records.find_pending_retry(lease)
    assert run is not None  # recorded by the caller
    lease.transition(S.QUEUED, now=now, cause=cause, progress={}, **_next_run(lease, run, now))
    abandoned_placements.abandon_placements(lease, now=now)
    _enqueue_next_run(lease, now)


def _next_run(lease: Lease, run: LeaseAttempt, now: datetime) -> dict[str, Any]:
    """Return the columns of a lease that is queued for its next run."""
    attempt = lease.attempt + 1 if run.counted else lease.attempt
    starts = max(run.retry_at or now, now)
    text = f"Run {attempt} of {lease.retries + 1} starts at {starts:%H:%M:%S} UTC."
    return {
        "attempt": attempt,
        "requeued_at": starts,
        "pending_reason": text if run.counted else "",
        "due_at": lease.end_date,
        "claimed_until": None,
        "unfinished_claims": 0,
    }


def _enqueue_next_run(lease: Lease, now: datetime) -> None:
    after_s = max((lease.queues_since - now).total_seconds(), 0)
    outbox.enqueue("broker.reconcile_lease", lease.pk, tenant_id=lease.tenant_id, now=now, after_s=after_s)


def _has_time_left(lease: Lease, now: datetime) -> bool:
    """Return whether the lease's duration allows another run."""
    used_s = lease.active_seconds + (int((now - lease.active_at).total_seconds()) if lease.active_at else 0)
    return lease.max_duration_s - used_s >= MIN_LEFT_S
