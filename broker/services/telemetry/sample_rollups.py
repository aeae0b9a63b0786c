"""Roll samples up to minutes, and minutes to hours.

Batches say what is new. A minute is computed again whenever a batch of it comes late, so the result depends on
neither order nor repetition.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from django.db import connection, transaction

from broker.domain.telemetry.throttle_reasons import PROVIDER_REASONS
from broker.models import GpuSlot, SampleBatch
from ports.postgres.sql_statements import load_sql

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
BATCHES = 500  # of one node in one transaction
# One process rolls a node up at a time: an hour is computed from minutes, which another might not have committed yet.
LOCK_SQL = "SELECT pg_try_advisory_xact_lock(7, hashtext(%s))"


@dataclass(frozen=True, slots=True)
class _Range:
    """Minutes of a node to compute again, within one hour."""

    since: datetime
    until: datetime


def roll_up_samples(*, now: datetime) -> int:
    """Compute minutes and hours from new batches; return how many batches.

    A minute that is not over waits for the next run, and so does a node that another process rolls up.
    """
    open_minute = now.replace(second=0, microsecond=0)
    due = SampleBatch.objects.filter(rolled_up=False, last_at__lt=open_minute)
    done = 0
    for node_id in due.order_by("node").values_list("node", flat=True).distinct():
        while found := _roll_up_node(node_id, open_minute):
            done += found
    return done


def _roll_up_node(node_id: str, open_minute: datetime) -> int:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(LOCK_SQL, [node_id])
            if cursor.fetchone() != (True,):
                return 0
        due = SampleBatch.objects.filter(node=node_id, rolled_up=False, last_at__lt=open_minute)
        batches = list(due.order_by("last_at")[:BATCHES])
        slots = list(GpuSlot.objects.filter(gpu__node=node_id).values_list("id", flat=True))
        for each in _ranges(batches):
            values = {"slots": slots, "since": each.since, "until": each.until, "provider_reasons": PROVIDER_REASONS}
            _run("telemetry/roll_up_minutes", values)
            hour = _hour(each.since)
            _run("telemetry/roll_up_hours", {"slots": slots, "since": hour, "until": hour + HOUR})
        SampleBatch.objects.filter(pk__in=[each.pk for each in batches]).update(rolled_up=True)
    return len(batches)


def _ranges(batches: list[SampleBatch]) -> Iterator[_Range]:
    """Return what batches touched, one range per hour."""
    touched = sorted(at for batch in batches for at in _minutes(batch))
    for _, minutes in groupby(touched, key=_hour):
        times = list(minutes)
        yield _Range(times[0], times[-1] + MINUTE)


def _minutes(batch: SampleBatch) -> Iterator[datetime]:
    """Return the first and last minute of a batch in each of its hours."""
    first, last = (at.replace(second=0, microsecond=0) for at in (batch.first_at, batch.last_at))
    while _hour(first) < _hour(last):
        yield first
        yield _hour(first) + HOUR - MINUTE
        first = _hour(first) + HOUR
    yield first
    yield last


def _hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def _run(name: str, values: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(load_sql(f"broker/{name}"), values)
