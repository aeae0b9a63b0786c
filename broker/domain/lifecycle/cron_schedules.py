"""Cron expressions in a time zone: five fields, from minute to day of the week."""

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

FIELDS = 5
MAX_LENGTH = 100


class InvalidCron(ValueError):
    """Raised for an expression that is not valid, or never due."""


def times_after(cron: str, time_zone: str, moment: datetime) -> Iterator[datetime]:
    """Yield the due times after a moment, in UTC.

    A time that a clock change skips is due right after it; one that occurs twice is due once.
    """
    if len(cron.split()) != FIELDS:
        raise InvalidCron("A cron expression has five fields: minute, hour, day, month, day of the week.")
    try:
        for due_at in CronSim(cron, moment.astimezone(ZoneInfo(time_zone))):
            if due_at > moment:  # in the second pass of a repeated hour cronsim begins with the first
                yield due_at.astimezone(UTC)
    except CronSimError as error:
        raise InvalidCron(f"The cron expression is not valid: {str(error)[0].lower()}{str(error)[1:]}.") from None


def next_time(cron: str, time_zone: str, moment: datetime) -> datetime:
    """Return the first due time after a moment; raise InvalidCron if there is none."""
    due_at = next(times_after(cron, time_zone, moment), None)
    if due_at is None:
        raise InvalidCron("The cron expression is never due.")
    return due_at
