"""Due schedules: each due time requests one lease, or records why not."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

import structlog
from django.db import DatabaseError, transaction

from broker.domain.lifecycle.cron_schedules import next_time
from broker.models import Lease, LeaseSchedule, OverlapPolicy, ScheduledRun, ScheduledRunResult
from broker.services.leases import lease_requests
from broker.services.leases.launch_approvals import ApprovalRequired, request_scheduled_approval
from broker.services.leases.lease_arrays import ENDED_STATES
from broker.services.leases.lease_requests import LeaseRequest
from broker.services.leases.schedules.schedule_records import request_of
from broker.services.secrets.variable_encryption import VariableUnreadable
from tenants.services.actor_grants import current_grants
from tenants.services.actors import Actor
from tenants.services.errors import ProblemError
from tenants.services.rls import system_scope, tenant_scope

log = structlog.get_logger(__name__)
ROW_ERRORS = (DatabaseError, ValueError, LookupError)  # a fault in one schedule's data
BATCH = 200
LATEST_START = timedelta(hours=1)  # a time that no worker saw for so long is missed
MAX_TEXT = 500


class RunOutcome(NamedTuple):
    """What became of a due time."""

    result: ScheduledRunResult
    lease: Lease | None = None
    text: str = ""


def run_due_schedules(*, now: datetime) -> int:
    """Run every schedule that is due; return how many leases were requested."""
    with system_scope():
        due = LeaseSchedule.objects.filter(next_at__lte=now).order_by("next_at", "pk")
        found = list(due.values_list("pk", "tenant_id")[:BATCH])
    started = 0
    for schedule_id, tenant_id in found:
        try:
            started += _run_schedule(schedule_id, tenant_id, now)
        except ROW_ERRORS as error:  # one unexpected row must not stop the others
            log.error("schedule not run", schedule=schedule_id, exc_info=error)
    return started


def _run_schedule(schedule_id: str, tenant_id: str, now: datetime) -> bool:
    """Run one schedule's due time in a transaction; another worker's is left to it."""
    with tenant_scope(tenant_id):
        rows = LeaseSchedule.objects.select_for_update(of=("self",), skip_locked=True)
        schedule = rows.select_related("project__tenant").filter(pk=schedule_id, next_at__lte=now).first()
        if schedule is None or schedule.next_at is None:
            return False
        due_at, lease = schedule.next_at, None
        if not ScheduledRun.objects.filter(schedule=schedule, due_at=due_at).exists():
            lease = _record_run(schedule, due_at, now)
        LeaseSchedule.objects.filter(pk=schedule.pk).update(
            next_at=next_time(schedule.cron, schedule.time_zone, max(now, due_at))
        )
        return lease is not None


def _record_run(schedule: LeaseSchedule, due_at: datetime, now: datetime) -> Lease | None:
    """Request the lease of a due time and record the outcome."""
    outcome = _request_lease(schedule, due_at, now)
    ScheduledRun.objects.create(
        tenant_id=schedule.tenant_id,
        schedule=schedule,
        due_at=due_at,
        result=outcome.result,
        lease=outcome.lease,
        text=outcome.text[:MAX_TEXT],
        made_at=now,
    )
    return outcome.lease


def _request_lease(schedule: LeaseSchedule, due_at: datetime, now: datetime) -> RunOutcome:
    if now - due_at > LATEST_START:
        return RunOutcome(ScheduledRunResult.MISSED, text="The broker was not running at that time.")
    if refused := _why_not_allowed(schedule, now):
        return RunOutcome(ScheduledRunResult.REFUSED, text=refused)
    if schedule.overlap == OverlapPolicy.SKIP and (earlier := _running_lease(schedule)):
        return RunOutcome(ScheduledRunResult.SKIPPED, text=f"{earlier.name} of an earlier time is not over.")
    local = due_at.astimezone(ZoneInfo(schedule.time_zone))
    try:
        wanted = replace(request_of(schedule), name=f"{schedule.name}-{local:%m%d-%H%M}")
        with transaction.atomic():
            lease = lease_requests.queue_lease(wanted, project=schedule.project, actor=_actor_of(schedule), now=now)
    except VariableUnreadable as error:
        return RunOutcome(ScheduledRunResult.REFUSED, text=f"{error}. Create the schedule again.")
    except ApprovalRequired as needed:
        return _ask_approval(schedule, wanted, needed, now)
    except ProblemError as refusal:
        log.info("scheduled lease refused", schedule=schedule.pk, why=refusal.detail)
        return RunOutcome(ScheduledRunResult.REFUSED, text=f"{refusal.detail} {refusal.fix.text}")
    return RunOutcome(ScheduledRunResult.STARTED, lease)


def _ask_approval(schedule: LeaseSchedule, wanted: LeaseRequest, needed: ApprovalRequired, now: datetime) -> RunOutcome:
    """Request approval of a due lease; record where it waits."""
    try:
        with transaction.atomic():
            request_id = request_scheduled_approval(
                wanted, needed, project=schedule.project, actor=_actor_of(schedule), now=now
            )
    except ProblemError as refusal:
        return RunOutcome(ScheduledRunResult.REFUSED, text=f"{needed.detail} {refusal.detail}")
    return RunOutcome(ScheduledRunResult.REFUSED, text=f"{needed.detail} It waits for approval: {request_id}.")


def _why_not_allowed(schedule: LeaseSchedule, now: datetime) -> str:
    """Return why its requester may request no leases now; empty if it may."""
    if schedule.project.tenant.suspended_at is not None:
        return "The tenant is suspended. Ask your operator to resume it."
    if schedule.project.archived_at is not None:
        return f"{schedule.project.name} is archived. Unarchive it, or delete the schedule."
    grants = current_grants(_actor_of(schedule), tenant_id=schedule.tenant_id, now=now)
    if not grants.may("leases.write", schedule.project.path):
        return (
            f"{schedule.requested_by_label} may no longer request leases in {schedule.project.name}, or the token of"
            " the schedule is gone. Create the schedule again."
        )
    return ""


def _actor_of(schedule: LeaseSchedule) -> Actor:
    return Actor(
        schedule.requested_by_kind,
        schedule.requested_by,
        schedule.requested_by_label,
        token=schedule.requested_with_token,
    )


def _running_lease(schedule: LeaseSchedule) -> Lease | None:
    """Return a lease of an earlier time that is not over."""
    earlier = ScheduledRun.objects.filter(schedule=schedule, lease__isnull=False)
    return Lease.objects.filter(pk__in=earlier.values("lease")).exclude(state__in=ENDED_STATES).first()
