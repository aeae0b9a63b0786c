"""Launch form: start, end and retries of a lease."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.http import QueryDict
from django.utils.translation import gettext as _

from broker.domain.workloads.templates import BATCH
from broker.models import Lease
from web.portal.durations import format_seconds, parse_duration

MAX_LENGTH, MAX_DIGITS = 100, 6
YEARS = range(2000, 3000)
FIELDS = ("starts", "extend_by", "extend_limit", "retries", "attempt_limit", "array_size", "cron")


@dataclass(frozen=True, slots=True)
class LaunchTerms:
    """Values of the fields as written; all are optional."""

    starts: str = ""
    extend_by: str = ""
    extend_limit: str = ""
    notify_on_end: bool = False
    retries: str = ""
    attempt_limit: str = ""
    array_size: str = ""
    cron: str = ""
    overlap: bool = False  # request a lease although the one of an earlier time is not over

    @property
    def has_end_terms(self) -> bool:
        """Return whether anything is set about when it starts, ends and repeats."""
        return bool(self.starts or self.extend_by or self.extend_limit or self.cron) or self.notify_on_end

    @classmethod
    def of(cls, fields: QueryDict) -> "LaunchTerms":
        written = {name: fields.get(name, "").strip()[:MAX_LENGTH] for name in FIELDS}
        return cls(notify_on_end="notify_on_end" in fields, overlap="overlap" in fields, **written)

    def request_values(self, *, workload: str, zone: ZoneInfo, errors: dict[str, str]) -> dict[str, Any]:
        """Return the values of a lease request; records an error for each unreadable field."""
        durations = {name: self._duration(name, errors) for name in ("extend_by", "extend_limit")}
        values = {
            "starts_at": parse_local_time(self.starts, "starts", zone, errors),
            "extend_by_s": durations["extend_by"],
            "extend_limit_s": durations["extend_limit"],
            "notify_on_end": self.notify_on_end,
        }
        if workload == BATCH.name:
            values |= {
                "retries": self._number("retries", errors),
                "attempt_limit_s": self._duration("attempt_limit", errors),
            }
        return values

    def _duration(self, name: str, errors: dict[str, str]) -> int:
        text = getattr(self, name)
        seconds = parse_duration(text) if text else 0
        if seconds is None:
            errors[name] = _("This is not a valid duration. Enter, for example, 90 min or 8 h, or leave it empty.")
        return seconds or 0

    def array(self, *, workload: str, errors: dict[str, str]) -> int:
        """Return how many leases are requested together; 0 or 1: a single one."""
        return self._number("array_size", errors) if workload == BATCH.name else 0

    def _number(self, name: str, errors: dict[str, str]) -> int:
        text = getattr(self, name)
        if text and not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
            errors[name] = _("This is not a whole number. Enter one, or leave it empty.")
            return 0
        return int(text or 0)


def parse_local_time(text: str, field: str, zone: ZoneInfo, errors: dict[str, str]) -> datetime | None:
    """Return the time of a date field in UTC, or record an error."""
    if not text:
        return None
    with suppress(ValueError):
        when = datetime.fromisoformat(text)
        if when.year in YEARS:  # other years may overflow when converted to another time zone
            return (when if when.tzinfo else when.replace(tzinfo=zone)).astimezone(UTC)
    errors[field] = _("This is not a valid date and time. Choose one, or leave it empty.")
    return None


def prefill_terms(fields: QueryDict, lease: Lease) -> None:
    """Fill in the terms of an earlier lease, except its start."""
    if lease.extend_by_s:
        fields.setdefault("extend_by", format_seconds(lease.extend_by_s))
        fields.setdefault("extend_limit", format_seconds(lease.extend_limit_s))
    if lease.notify_on_end:
        fields.setdefault("notify_on_end", "on")
    if lease.retries:
        fields.setdefault("retries", str(lease.retries))
    if lease.attempt_limit_s:
        fields.setdefault("attempt_limit", format_seconds(lease.attempt_limit_s))
