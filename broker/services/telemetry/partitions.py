"""Daily partitions of telemetry: created before the day, dropped after the retention."""

from datetime import date, datetime, timedelta

from django.conf import settings
from django.db import connection

KINDS = ("gpusample", "gpuminute", "gpuhour")
DAYS_AHEAD = 2


def create_partitions(days: set[date]) -> None:
    """Create the partitions of these days where they are missing."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT create_telemetry_partition(kind, day) FROM unnest(%s::text[]) kind, unnest(%s::date[]) day",
            [list(KINDS), sorted(days)],
        )


def keep_partitions(*, now: datetime) -> int:
    """Create the next days' partitions and drop old ones; return how many."""
    today = now.date()
    create_partitions({today + timedelta(days=ahead) for ahead in range(DAYS_AHEAD + 1)})
    with connection.cursor() as cursor:
        dropped = 0
        for kind, days in zip(KINDS, settings.TELEMETRY_RETENTION_DAYS, strict=True):
            cursor.execute("SELECT drop_telemetry_partitions(%s, %s)", [kind, today - timedelta(days=days)])
            dropped += cursor.fetchone()[0]
    return dropped
