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
BATCHES = 5_000  # in one transaction


@dataclass(frozen=True, slots=True)
class _Range:
    """Minutes of one node to compute again, within one hour."""

    node_id: str
    since: datetime
    until: datetime


def roll_up_samples(*, now: datetime) -> int:
    """Compute minutes and hours from new batches; return how many batches."""
    done = 0
    while found := _roll_up_some(now.replace(second=0, microsecond=0)):
        done += found
    return done


def _roll_up_some(open_minute: datetime) -> int:
    with transaction.atomic():
        batches = list(
            SampleBatch.objects.select_for_update(skip_locked=True)
            .filter(rolled_up=False, last_at__lt=open_minute)
            .order_by("last_at")[:BATCHES]
        )
        ranges = list(_ranges(batches))
        slots: dict[str, list[int]] = {}
        for node_id in {each.node_id for each in ranges}:
            slots[node_id] = list(GpuSlot.objects.filter(gpu__node=node_id).values_list("id", flat=True))
        for each in ranges:
            values = {"slots": slots[each.node_id], "since": each.since, "until": each.until}
            _run("telemetry/roll_up_minutes", values | {"provider_reasons": PROVIDER_REASONS})
        for node_id, hour in sorted({(each.node_id, _hour(each.since)) for each in ranges}):
            _run("telemetry/roll_up_hours", {"slots": slots[node_id], "since": hour, "until": hour + HOUR})
        SampleBatch.objects.filter(pk__in=[each.pk for each in batches]).update(rolled_up=True)
    return len(batches)


def _ranges(batches: list[SampleBatch]) -> Iterator[_Range]:
    """Return what batches touched, one range per node and hour."""
    parts = sorted((batch.node_id, _hour(at), at) for batch in batches for at in _minutes(batch))
    for (node_id, _), minutes in groupby(parts, key=lambda each: each[:2]):
        times = [each[2] for each in minutes]
        yield _Range(node_id, times[0], times[-1] + MINUTE)


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
