"""Query parameters of the API: which are known, and how their values are read."""

import re
from collections.abc import Collection
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from django.utils.dateparse import parse_datetime
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from billing.domain.periods import midnight

DRY_RUN = "dry_run"
FLAG_VALUES = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
FLAG_DESCRIPTION = "`true` or `false`; also yes/no, on/off and 1/0, in any case. Anything else is refused."
MOMENT_DESCRIPTION = "Without a time zone it is read in the tenant's (operators: UTC); a day is its beginning."
MAY_BE_EMPTY = frozenset({"cursor", "q", "search"})  # the first page; no search
TAG = re.compile(r"tag\.(.{1,60})", re.DOTALL)  # a tag may have an empty value
MAX_SHOWN = 40


def parse_flag(name: str, text: str) -> bool:
    """Return the value of a flag, or raise an error that says what to send."""
    value = FLAG_VALUES.get(text.strip().lower())
    if value is None:
        raise ValidationError(
            {name: f"{text[:MAX_SHOWN]!r} is neither true nor false. Send {name}=true or {name}=false."}
        )
    return value


def parse_moment(name: str, text: str, zone: ZoneInfo) -> datetime:
    """Return a moment in UTC; a text without a time zone is read in `zone`."""
    try:
        if "T" not in text:
            return midnight(date.fromisoformat(text), zone)
        # A plus sign in a query string that was not escaped arrives as a space.
        moment = parse_datetime(text.replace(" ", "+", 1))
        if moment is not None:
            return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValidationError({name: "Must be a time such as 2026-11-21T09:30:00Z, or a day such as 2026-11-21."})


def parse_day(request: Request, name: str, zone: ZoneInfo) -> datetime | None:
    """Return the beginning of the day that a parameter names; None without one."""
    text = request.query_params.get(name, "")
    try:
        return midnight(date.fromisoformat(text), zone) if text else None
    except (ValueError, OverflowError):
        raise ValidationError({name: "Must be a day such as 2026-11-21."}) from None


def check_parameters(request: Request, known: Collection[str]) -> None:
    """Refuse query parameters that are unknown, repeated, empty, or contain a NUL."""
    given = list(request.query_params.lists())
    problems = (
        # No column can hold a NUL.
        {name: "Contains a NUL character. Remove it." for name, values in given if "\x00" in "".join((name, *values))}
        or {name: _unknown_message(name, known) for name, _ in given if name not in known}
        or {name: "Is given several times. Send it once." for name, values in given if len(values) > 1}
        or {name: "Is empty. Send a value, or leave it out." for name, values in given if _is_missing(name, values[0])}
    )
    if problems:
        raise ValidationError({name.replace("\x00", "\N{REPLACEMENT CHARACTER}"): problems[name] for name in problems})


def _unknown_message(name: str, known: Collection[str]) -> str:
    if name == DRY_RUN:
        return "This operation has no dry run. Leave dry_run out."
    return f"Is unknown. Known: {', '.join(sorted(known)) or 'none'}."


def _is_missing(name: str, value: str) -> bool:
    return not value.strip() and name not in MAY_BE_EMPTY and not TAG.fullmatch(name)
