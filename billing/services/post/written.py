"""A letter as it is handed to the mail server, and what letters have in common."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from django.conf import settings

from ports.mail import Enclosed


@dataclass(frozen=True, slots=True)
class Written:
    to: Sequence[str]
    subject: str
    text: str
    paper: Callable[[], Enclosed] | None = None  # laid out only once no transaction is open


def link(path: str) -> str:
    return f"{settings.PUBLIC_URL.rstrip('/')}/{path}"


def clock_of(at: datetime, time_zone: str) -> str:
    """Write a moment as the tenant's own clock has it: 24 November 2026, 15:04 (Europe/Berlin)."""
    here = at.astimezone(ZoneInfo(time_zone))
    return f"{here.day} {here:%B %Y, %H:%M} ({time_zone})"
