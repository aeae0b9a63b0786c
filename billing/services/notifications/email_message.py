"""An e-mail ready for the mail server, and helpers shared by all writers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from django.conf import settings

from ports.mail import Attachment


@dataclass(frozen=True, slots=True)
class OutgoingEmail:
    to: Sequence[str]
    subject: str
    text: str
    attachment: Callable[[], Attachment] | None = None  # rendered only when no transaction is open


def portal_link(path: str) -> str:
    return f"{settings.PUBLIC_URL.rstrip('/')}/{path}"


def format_local_time(at: datetime, time_zone: str) -> str:
    """Write a time in a time zone: 24 November 2026, 15:04 (Europe/Berlin)."""
    here = at.astimezone(ZoneInfo(time_zone))
    return f"{here.day} {here:%B %Y, %H:%M} ({time_zone})"
