"""Preemption of spot leases when their notice ends, and their requeue."""

from datetime import datetime, timedelta

from django.db import transaction

from broker.domain.lifecycle.spot_terms import ReclaimNoticeState
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.domain.workloads.templates import BATCH
from broker.models import Lease, Transition
from broker.services.leases import attempt_records, spot_notices
from broker.services.leases.lease_requests import MIN_DURATION_S
from broker.services.leases.lifecycle import stop_and_start, termination
from ports import outbox
from tenants.services.actors import SYSTEM
from tenants.services.authentication import require_not_suspended
from tenants.services.errors import ProblemError

RECHECK_AFTER = timedelta(seconds=10)  # if the message that queues it again is lost
PREEMPTED_TEXT = "preempted at the end of its notice, for on-demand use"


def end_at_term(lease: Lease, *, now: datetime, at: datetime | None) -> None:
    """End a lease whose time or notice is up.

    `at` is when, as far as it is known to have run. Raises StaleLease if a notice was withdrawn in the meantime.
    """
    if lease.state != LeaseState.ACTIVE or not lease.reclaim_at or lease.reclaim_at != lease.must_end_at:
        termination.release_lease(lease, reason=EndReason.EXPIRED, now=now, at=at)
        return
    with transaction.atomic():  # nothing is recorded if the notice was withdrawn
        _preempt(lease, now=now, at=at, ended_at=at or lease.reclaim_at)


def _preempt(lease: Lease, *, now: datetime, at: datetime | None, ended_at: datetime) -> None:
    """End a lease when its notice is over, or queue it again."""
    if lease.workload == BATCH.name:  # a run of its own, which is no try
        attempt_records.record_attempt(lease, ended_at=ended_at, exit_code=None, text=PREEMPTED_TEXT, counted=False)
    if _may_queue_again(lease, now=now, at=at):
        cause = f"{PREEMPTED_TEXT}; it is queued again"
        stop_and_start.pause_lease(lease, reason=EndReason.PREEMPTED, cause=cause, actor=SYSTEM, now=now, at=ended_at)
    else:
        termination.release_once(lease, reason=EndReason.PREEMPTED, now=now, at=at, cause=PREEMPTED_TEXT)
    spot_notices.settle_notice(lease, ReclaimNoticeState.PREEMPTED, now=now)


def _may_queue_again(lease: Lease, *, now: datetime, at: datetime | None) -> bool:
    """Return whether a lease asked for it and enough of its duration is left."""
    ran_s = ((at or now) - (lease.active_at or now)).total_seconds() + lease.active_seconds
    in_time = lease.end_date is None or lease.end_date > now
    return lease.requeue_when_preempted and in_time and lease.max_duration_s - ran_s >= MIN_DURATION_S


def finish_stop(lease: Lease, *, now: datetime) -> None:
    """Finish the stop of a lease; a preempted one is queued again."""
    again = is_preempted(lease)
    stop_and_start.finish_stop(lease, now=now, due_at=now + RECHECK_AFTER if again else None)
    if again:
        outbox.enqueue("broker.reconcile_lease", lease.pk, tenant_id=lease.tenant_id, now=now)


def start_preempted_lease(lease: Lease, *, now: datetime) -> None:
    """Queue a stopped lease again if it was preempted; end it if a gate refuses.

    A lease that its tenant stopped stays as it is.
    """
    if not is_preempted(lease):
        return
    try:
        require_not_suspended(lease.project.tenant)
        stop_and_start.start_lease(lease, actor=SYSTEM, now=now, cause="queued again after it was preempted")
    except ProblemError as error:
        cause = f"preempted, and not queued again: {error.detail}"
        termination.release_lease(lease, reason=EndReason.PREEMPTED, now=now, cause=cause)


def is_preempted(lease: Lease) -> bool:
    """Return whether a stopping or stopped lease was stopped by preemption."""
    if not lease.requeue_when_preempted:
        return False
    stops = Transition.objects.filter(lease_id=lease.pk, before=LeaseState.ACTIVE, after=LeaseState.STOPPING)
    return stops.order_by("-seq").values_list("reason", flat=True).first() == EndReason.PREEMPTED
