"""Collect the logs of leases from their clusters.

Each step claims one log, reads its cluster with no transaction open, and stores what is new. Changes of the
lease's state become lines of the platform, so that a log tells the whole story.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import structlog

from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.domain.logs.log_lines import LineSource, LogLine, clean_text
from broker.domain.logs.secret_masks import mask_lines, secret_values, value_masker
from broker.models import Lease, LeaseLog
from broker.models.transitions import TICK_CAUSE
from broker.provisioners.base import ClusterUnreachable, LogRead, ProvisionSpec
from broker.services.inventory import cluster_provisioners
from broker.services.leases.provision_specs import load_provision_spec
from broker.services.logs import log_storage
from ports.postgres.sql_statements import fetch_rows, load_sql
from tenants.services.rls import system_scope, tenant_scope

log = structlog.get_logger(__name__)
S = LeaseState
STATES_WITH_OUTPUT = (S.PROVISIONING, S.ACTIVE, S.STOPPING, S.RELEASING)
AFTER_OUTPUT = (S.STOPPING, S.STOPPED, S.RELEASING, S.RELEASED)
END_OF_SECOND = timedelta(microseconds=999_999)
FOLLOWED_INTERVAL = timedelta(seconds=1)
# Of a log that nobody reads: seconds until the next read after so many reads without a new line.
INTERVALS_S = (10, 10, 20, 40)
LAST_INTERVAL = timedelta(minutes=1)
ENDING_INTERVAL = timedelta(seconds=1)
WAITING_INTERVAL = timedelta(seconds=10)  # while it is queued or stopped, only its state changes
MAX_READS = 16  # of one log in a row, while there is more
MAX_LAST_READS = 4  # before its pod goes
MAX_ATTEMPTS = 3  # to store last output while another process collects the same log
MAX_FAULT = 300
UNREACHABLE = "The cluster does not respond"
BATCH = 200
ADOPTION_BATCH = 500


class _StateChange(NamedTuple):
    """A change of a lease's state."""

    seq: int
    at: datetime
    before: str
    after: str
    reason: str
    cause: str


def due_logs(*, now: datetime) -> list[tuple[str, str]]:
    """Return the lease and tenant ids of logs to collect now, most overdue first."""
    with system_scope():
        due = LeaseLog.objects.filter(log_storage.not_claimed(now), due_at__lte=now).order_by("due_at")
        return list(due.values_list("lease_id", "tenant_id")[:BATCH])


def begin_missing_logs(*, now: datetime) -> int:
    """Begin the logs of running leases without one; return how many.

    After an upgrade these are the leases that ran before it.
    """
    with system_scope():
        running = Lease.objects.filter(state__in=STATES_WITH_OUTPUT, log=None).order_by("id")
        missing = list(running.values_list("id", "tenant_id")[:ADOPTION_BATCH])
    for lease_id, tenant_id in missing:
        with tenant_scope(tenant_id):
            log_storage.begin_log(Lease(pk=lease_id, tenant_id=tenant_id), now=now)
    return len(missing)


def collect_log(lease_id: str, tenant_id: str, *, now: datetime) -> int:
    """Collect what is new in a log that is due; return how many lines."""
    with tenant_scope(tenant_id):
        claimed = log_storage.claim_due_log(lease_id, now=now)
        lease = Lease.objects.select_related("offering", "volume").filter(pk=lease_id).first() if claimed else None
        if claimed is None or lease is None:
            return 0
        changes = _new_changes(claimed)
        has_output = lease.state in STATES_WITH_OUTPUT
        spec = load_provision_spec(lease, with_secrets=True) if has_output else None
    read = _read(claimed, spec, now, MAX_READS) if spec else LogRead(cursor=claimed.cursor)
    with tenant_scope(tenant_id):
        return _store(claimed, lease, read, changes, now=now) or 0


def collect_last_output(lease: Lease, spec: ProvisionSpec, log: LeaseLog, *, now: datetime) -> int:
    """Collect the last output of a lease before its pod goes; return how many lines.

    `spec` has the values of its secrets. `log` is as it was loaded; it is read again if another process stored
    something of it meanwhile. What such a process is reading at the same time is not stored.
    """
    for _ in range(MAX_ATTEMPTS):
        read = _read(log, spec, now, MAX_LAST_READS)
        if not read.lines and read.fault[:MAX_FAULT] == log.fault:
            return 0
        with tenant_scope(lease.tenant_id):
            stored = _store(log, lease, read, _new_changes(log), now=now)
            if stored is not None:
                return stored
            log.refresh_from_db()
    return 0


def _new_changes(log: LeaseLog) -> list[_StateChange]:
    """Return the changes of a lease's state that have no line yet."""
    wanted = {"lease": log.pk, "seq": log.transition_seq}
    return [_StateChange(*row) for row in fetch_rows(load_sql("broker/logs/state_changes"), wanted)]


def _store(log: LeaseLog, lease: Lease, read: LogRead, changes: Sequence[_StateChange], *, now: datetime) -> int | None:
    """Store a log's new output with the changes of state; return how many lines.

    None if another process was faster.
    """
    lines = _in_order(changes, read.lines)
    progress = log_storage.LogProgress(
        generation=lease.generation,
        cursor=read.cursor,
        transition_seq=changes[-1].seq if changes else log.transition_seq,
        fault=read.fault[:MAX_FAULT],
        **_schedule(log, lease, is_quiet=not lines, is_unreachable=read.fault.startswith(UNREACHABLE), now=now),
    )
    return len(lines) if log_storage.store_lines(log, lines, progress) else None


def _read(log: LeaseLog, spec: ProvisionSpec, now: datetime, max_reads: int) -> LogRead:
    """Read a cluster's new lines, masked and bounded; what cannot be read is a fault."""
    cursor = log.cursor if log.generation == spec.generation else {}
    if any(each.value is None for each in spec.secrets):  # it could not be masked
        text = f"The output is not read, since its secrets could not be masked: {spec.secret_fault}"
        return LogRead(cursor=cursor, fault=text)
    provisioner = cluster_provisioners.provisioner_of(spec)
    lines: list[LogLine] = []
    read = LogRead(cursor=cursor)
    try:
        for attempt in range(1, max_reads + 1):
            read = provisioner.read_log(spec, read.cursor, newest_only=attempt == max_reads, now=now)
            lines += read.lines
            if not read.more:
                break
    except ClusterUnreachable as error:
        read = LogRead(cursor=read.cursor, fault=f"{UNREACHABLE}: {error}")
    mask = value_masker(secret_values(spec.env, spec.secrets, spec.access_token))
    masked = mask_lines(mask, (line.text for line in lines))
    stored = tuple(LogLine(line.at, text, line.source) for line, text in zip(lines, masked, strict=True))
    return LogRead(stored, read.cursor, fault=read.fault)


def _schedule(log: LeaseLog, lease: Lease, *, is_quiet: bool, is_unreachable: bool, now: datetime) -> dict[str, Any]:
    """Return when the log is collected next."""
    quiet = min(log.quiet_reads + 1, len(INTERVALS_S)) if is_quiet else 0
    state = S(lease.state)
    if state == S.RELEASED:
        return {"due_at": None, "completed_at": now, "quiet_reads": quiet}
    if state == S.STOPPED and is_quiet:
        return {"due_at": None, "quiet_reads": quiet}  # its next start begins the log again
    if is_unreachable:
        after = LAST_INTERVAL
    elif log.followed_until and log.followed_until > now:
        after = FOLLOWED_INTERVAL
    elif state in (S.STOPPING, S.RELEASING):
        after = ENDING_INTERVAL
    elif state not in STATES_WITH_OUTPUT:
        after = WAITING_INTERVAL
    elif quiet < len(INTERVALS_S):
        after = timedelta(seconds=INTERVALS_S[quiet])
    else:
        after = LAST_INTERVAL
    return {"due_at": now + after, "quiet_reads": quiet}


def _in_order(changes: Sequence[_StateChange], output: Sequence[LogLine]) -> list[LogLine]:
    """Return changes of state and output in order of time; metering ticks change nothing.

    Changes are recorded in whole seconds: the end of a lease comes after all output of that second.
    """
    timed = [(line.at, line) for line in output]
    for change in changes:
        if change.before != change.after and change.cause != TICK_CAUSE:
            line = LogLine(change.at, clean_text(_describe_change(change)), LineSource.PLATFORM)
            timed.append((change.at + (END_OF_SECOND if change.after in AFTER_OUTPUT else timedelta()), line))
    return [line for _, line in sorted(timed, key=lambda each: each[0])]


def _describe_change(change: _StateChange) -> str:
    why = change.cause or ("" if change.reason == EndReason.NONE else change.reason.replace("_", " "))
    return f"lease {change.after}: {why}" if why else f"lease {change.after}"
