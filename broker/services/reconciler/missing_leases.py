"""Guard against ending active leases too early when their cluster no longer has them.

An answer may lack leases by mistake, though it comes from the right cluster and no older state of it:
that is checked before. So a lease must be missing in two checks, some seconds apart. Where many are
missing at once, none of them ends before they stayed so for a while, in which a person may look. Waiting
costs nobody anything: an end is dated to the last observation, and the placement is kept meanwhile.
"""

from datetime import datetime, timedelta

import structlog
from django.db.models import F

from broker.domain.lifecycle.states import LeaseCondition, LeaseState
from broker.models import Allocation, Lease, StaleLease
from ports import outbox
from tenants.services.rls import system_scope

log = structlog.get_logger(__name__)
SECOND_CHECK_AFTER = timedelta(seconds=3)
MASS_LOSS_DELAY = timedelta(minutes=10)  # how long many must stay missing
CHECK_VALID_FOR = timedelta(minutes=1)  # older checks are disregarded
AGAIN_S = 10.0
MASS_LOSS_SHARE, ALWAYS_ALLOWED = 10, 5  # one in ten may end at once, and a few always
PROGRESS_TEXT = "it is no longer in the cluster; this is checked once more"
MissingTimes = tuple[datetime, datetime]  # missing since, and last checked


def must_check_again(lease: Lease, *, now: datetime) -> bool:
    """Return whether a missing lease must be checked again, and schedule that."""
    gone = _missing_times(lease.progress, lease.seen_at, now)
    since = gone[0] if gone else now
    waited = now - since
    if waited < SECOND_CHECK_AFTER:
        _schedule_check(lease, since, now, after_s=(SECOND_CHECK_AFTER - waited).total_seconds())
        return True
    if waited < MASS_LOSS_DELAY and (many := _count_if_many(lease, now)):
        _delay_end(lease, since, many, now)
        return True
    return False


def _missing_times(progress: dict[str, str], seen_at: datetime | None, now: datetime) -> MissingTimes | None:
    """Return since when a lease is missing; None if that is outdated."""
    if "gone_since" not in progress:
        return None
    since, checked_at = (datetime.fromisoformat(progress[key]) for key in ("gone_since", "gone_at"))
    is_recent = now - checked_at <= CHECK_VALID_FOR and (seen_at is None or seen_at <= since)
    return (since, checked_at) if is_recent else None


def _count_if_many(lease: Lease, now: datetime) -> int:
    """Return how many leases the cluster misses now, or 0 if they are few."""
    held = Allocation.objects.filter(released_at=None, leaving_since=None)
    cluster = held.filter(lease=lease).values_list("gpu__node__cluster", flat=True).first()
    with system_scope():
        there = Lease.objects.filter(
            state=LeaseState.ACTIVE, pk__in=held.filter(gpu__node__cluster=cluster).values("lease")
        )
        gone = [
            each
            for each in there.filter(progress__has_key="gone_since").values_list("progress", "seen_at")
            if _missing_times(*each, now)
        ]
        return len(gone) if len(gone) > max(ALWAYS_ALLOWED, there.count() // MASS_LOSS_SHARE) else 0


def _delay_end(lease: Lease, since: datetime, many: int, now: datetime) -> None:
    conditions: dict[str, object] = {}
    if LeaseCondition.UNREACHABLE not in lease.conditions:
        log.error(
            "many leases disappeared at once; their end is delayed",
            lease=lease.pk,
            gone=many,
            until=since + MASS_LOSS_DELAY,
        )
        last = lease.seen_at or lease.state_since
        text = f"Its cluster no longer contains it and other leases; last seen at {last:%H:%M:%S} UTC"
        conditions = {"conditions": {**lease.conditions, str(LeaseCondition.UNREACHABLE): text}}
    _schedule_check(lease, since, now, after_s=AGAIN_S, **conditions)


def _schedule_check(lease: Lease, since: datetime, now: datetime, *, after_s: float, **changes: object) -> None:
    """Record the missing state, if the row is unchanged, and schedule another check."""
    progress = {"text": PROGRESS_TEXT, "percent": None, "gone_since": since.isoformat(), "gone_at": now.isoformat()}
    as_loaded = Lease.objects.filter(pk=lease.pk, state=lease.state, seq=lease.seq)
    due_at = now + timedelta(seconds=after_s)
    if not as_loaded.update(progress=progress, due_at=due_at, version=F("version") + 1, **changes):
        raise StaleLease(lease.pk)
    outbox.enqueue("broker.reconcile_lease", lease.pk, tenant_id=lease.tenant_id, now=now, after_s=after_s)
