"""Active leases that their cluster no longer knows: believed at the second look, and never of many in haste.

Whoever answers in a cluster's place may find nothing by mistake, though it is the right cluster and no older state of
it: that is asked before. So a lease must be gone in two looks, some seconds apart. And where many are gone at once,
none of them ends before they stayed so for a while, in which a person may look. Waiting costs nobody anything: an end
is dated to the last proof of life, and a place is kept that may still be taken.
"""

from datetime import datetime, timedelta

import structlog
from django.db.models import F

from broker.domain.states import Condition, LeaseState
from broker.models import Allocation, Lease, StaleLease
from ports import doorbell
from tenants.services.walls import as_sweep

log = structlog.get_logger(__name__)
SECOND_LOOK = timedelta(seconds=3)
DOUBT = timedelta(minutes=10)  # so long many must stay gone
LOOKED = timedelta(minutes=1)  # a look that is older says nothing any more
AGAIN_S = 10.0
SHARE, FEW = 10, 5  # one of ten may go at once, and a few always
TEXT = "it is no longer in the cluster; it is looked for once more"
Gone = tuple[datetime, datetime]  # since when it is gone, and when that was looked at last


def is_doubted(lease: Lease, *, now: datetime) -> bool:
    """Tell whether a lease that its cluster does not know is to be looked for again, which is seen to."""
    gone = _gone(lease.progress, lease.seen_at, now)
    since = gone[0] if gone else now
    waited = now - since
    if waited < SECOND_LOOK:
        _look_again(lease, since, now, after_s=(SECOND_LOOK - waited).total_seconds())
        return True
    if waited < DOUBT and (many := _many(lease, now)):
        _hold(lease, since, many, now)
        return True
    return False


def _gone(progress: dict[str, str], seen_at: datetime | None, now: datetime) -> Gone | None:
    """Return since when a lease is gone; None if it was seen since, or nobody looked for long."""
    if "gone_since" not in progress:
        return None
    since, looked = (datetime.fromisoformat(progress[key]) for key in ("gone_since", "gone_at"))
    is_news = now - looked <= LOOKED and (seen_at is None or seen_at <= since)
    return (since, looked) if is_news else None


def _many(lease: Lease, now: datetime) -> int:
    """Count the leases that their cluster does not know just now; nought when they are few enough to go."""
    held = Allocation.objects.filter(released_at=None, leaving_since=None)
    cluster = held.filter(lease=lease).values_list("gpu__node__cluster", flat=True).first()
    with as_sweep():
        there = Lease.objects.filter(
            state=LeaseState.ACTIVE, pk__in=held.filter(gpu__node__cluster=cluster).values("lease")
        )
        gone = [
            each
            for each in there.filter(progress__has_key="gone_since").values_list("progress", "seen_at")
            if _gone(*each, now)
        ]
        return len(gone) if len(gone) > max(FEW, there.count() // SHARE) else 0


def _hold(lease: Lease, since: datetime, many: int, now: datetime) -> None:
    conditions: dict[str, object] = {}
    if Condition.UNREACHABLE not in lease.conditions:
        log.error("many leases are gone at once: they wait", lease=lease.pk, gone=many, until=since + DOUBT)
        last = lease.seen_at or lease.at
        text = f"Its cluster no longer knows it, nor others of its leases; last seen at {last:%H:%M:%S} UTC"
        conditions = {"conditions": {**lease.conditions, str(Condition.UNREACHABLE): text}}
    _look_again(lease, since, now, after_s=AGAIN_S, **conditions)


def _look_again(lease: Lease, since: datetime, now: datetime, *, after_s: float, **changes: object) -> None:
    """Write down what was not seen, if the row is still as it was loaded, and have it looked for again."""
    progress = {"text": TEXT, "percent": None, "gone_since": since.isoformat(), "gone_at": now.isoformat()}
    as_loaded = Lease.objects.filter(pk=lease.pk, state=lease.state, seq=lease.seq)
    due_at = now + timedelta(seconds=after_s)
    if not as_loaded.update(progress=progress, due_at=due_at, version=F("version") + 1, **changes):
        raise StaleLease(lease.pk)
    doorbell.ring("broker.step", lease.pk, tenant_id=lease.tenant_id, now=now, after_s=after_s)
