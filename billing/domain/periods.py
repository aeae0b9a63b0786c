"""Half-open time intervals, and calendar months in a customer's time zone."""

from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """The non-empty interval [start, end), normalised to UTC."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        for name, instant in (("start", self.start), ("end", self.end)):
            if instant.tzinfo is None:
                raise ValueError(f"{instant.isoformat()} has no time zone; hand in aware times")
            object.__setattr__(self, name, instant.astimezone(UTC))  # a session of PostgreSQL may be elsewhere
        if not self.start < self.end:
            raise ValueError(f"a period must end after it starts, but {self} does not")

    def __contains__(self, instant: datetime) -> bool:
        return self.start <= instant < self.end

    def __str__(self) -> str:
        return f"[{self.start.isoformat()}, {self.end.isoformat()})"

    @property
    def seconds(self) -> int:
        """The length in whole seconds; raises ValueError for fractions, which cannot be billed."""
        seconds, rest = divmod(self.end - self.start, SECOND)
        if rest:
            raise ValueError(f"{self} is not a whole number of seconds; cut both ends to the second first")
        return seconds

    def intersect(self, other: "Period") -> "Period | None":
        """Return the overlap with another period, or None."""
        start, end = max(self.start, other.start), min(self.end, other.end)
        return Period(start, end) if start < end else None


def midnight(day: date, zone: ZoneInfo) -> datetime:
    """Return the start of a local day in UTC.

    Raises OverflowError at the ends of the calendar.
    """
    local = datetime(day.year, day.month, day.day, tzinfo=zone)
    # Where clocks jump at midnight there are two readings. The later is the one PostgreSQL takes: the
    # moment of the jump when midnight was skipped, the second midnight when it came twice.
    return max(local.astimezone(UTC), local.replace(fold=1).astimezone(UTC))


def deadline_after(instant: datetime, zone: ZoneInfo, *, days: int) -> datetime:
    """Return the end of that many full days after the day of an instant.

    Days are those of the time zone, whether they have 23, 24 or 25 hours.
    """
    return midnight(instant.astimezone(zone).date() + timedelta(days=days + 1), zone)


def month_of(tz: str, instant: datetime, *, anchor: int = 1) -> Period:
    """Return the month of a time zone that contains an instant.

    Months run from local midnight of the anchor day, or of the last day of shorter months.
    """
    if not 1 <= anchor <= 31:
        raise ValueError(f"months begin on day 1 to 31, not on day {anchor}")
    zone = ZoneInfo(tz)
    local = instant.astimezone(zone)
    index = local.year * 12 + local.month - 1
    while _boundary(zone, index, anchor) > instant:
        index -= 1
    return Period(_boundary(zone, index, anchor), _boundary(zone, index + 1, anchor))


def _boundary(zone: ZoneInfo, index: int, anchor: int) -> datetime:
    """Return the start of a month, given its number counted from year 0."""
    year, month = divmod(index, 12)
    day = min(anchor, monthrange(year, month + 1)[1])
    return midnight(date(year, month + 1, day), zone)
