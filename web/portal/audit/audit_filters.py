"""Filters of the audit log: actor, action, day, subject.

They are part of the page's URL and of its API call.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from tenants.models import AuditEvent

RECENT_EVENTS = 2000  # latest events whose actors and actions are offered as filters
FILTER_COLUMNS = {"action": "action", "actor": "actor_id", "subject": "subject_id"}
FILTER_LABELS = {
    "action": gettext_noop("Action"),
    "actor": gettext_noop("User"),
    "day": gettext_noop("Day"),
    "subject": gettext_noop("Object"),
}
DAY_PATTERN, YEARS = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII), range(1970, 3000)
AuditFilters = dict[str, str]


def filter_events(rows: Any, query: Mapping[str, str], time_zone: str) -> tuple[Any, AuditFilters]:
    """Return the events that a query string selects, newest first, and its filters."""
    chosen: AuditFilters = {}
    for name, column in FILTER_COLUMNS.items():
        value = query.get(name, "")[:60].replace("\x00", "")
        if value:
            rows, chosen[name] = rows.filter(**{column: value}), value
    if day := parse_day(query.get("day", "")):
        begin, end = day_bounds(day, time_zone)
        rows, chosen["day"] = rows.filter(at__gte=begin, at__lt=end), day.isoformat()
    return rows.order_by("-id"), chosen


def parse_day(text: str) -> date | None:
    """Parse a day; None if invalid or out of a time zone's range."""
    try:
        day = date.fromisoformat(text) if DAY_PATTERN.fullmatch(text) else None
    except ValueError:
        return None
    return day if day and day.year in YEARS else None


def day_bounds(day: date, time_zone: str) -> tuple[datetime, datetime]:
    """Return when a day begins and ends in a time zone."""
    zone = ZoneInfo(time_zone)
    first, last = datetime.combine(day, time(), zone), datetime.combine(day + timedelta(days=1), time(), zone)
    return first.astimezone(UTC), last.astimezone(UTC)


def api_parameters(chosen: AuditFilters, time_zone: str) -> AuditFilters:
    """Return the filters as the API's query parameters."""
    query = {name: value for name, value in chosen.items() if name in FILTER_COLUMNS}
    if "day" in chosen:
        begin, end = day_bounds(date.fromisoformat(chosen["day"]), time_zone)
        query |= {"at__gte": f"{begin:%Y-%m-%dT%H:%M:%SZ}", "at__lt": f"{end:%Y-%m-%dT%H:%M:%SZ}"}
    return query


def filter_chips(
    rows: Any,
    chosen: AuditFilters,
    events: Iterable[Any],
    to: Callable[[AuditFilters], str],
    *,
    today: date,
    also: AuditFilters,
) -> list[dict[str, Any]]:
    """Return the filter chips with the URLs that set or remove them; one query.

    `also` holds the other query parameters of the page. Each event gets the URLs that show only similar
    ones.
    """
    for event in events:
        event.only = {name: to({**chosen, name: getattr(event, column)}) for name, column in FILTER_COLUMNS.items()}
    latest = rows.order_by("-id").values("pk")[:RECENT_EVENTS]
    acts = AuditEvent.objects.filter(pk__in=latest).values_list("action", "actor_id", "actor_label")
    seen = sorted(acts.distinct())
    actors = {pk: label for _, pk, label in seen if pk}
    choices: dict[str, dict[str, str]] = {
        "action": {action: action for action, _, _ in seen},
        "actor": dict(sorted(actors.items(), key=lambda each: each[1])),
        "day": {(today - timedelta(days=n)).isoformat(): word for n, word in enumerate((_("Today"), _("Yesterday")))},
        "subject": {event.subject_id: event.subject_label for event in events if event.subject_label},
    }
    return [
        {
            "name": name,
            "label": _(FILTER_LABELS[name]),
            "value": known.get(chosen[name], chosen[name]) if name in chosen else "",
            "remove": to({k: v for k, v in chosen.items() if k != name}),
            "kept": [(k, v) for k, v in {**also, **chosen}.items() if k != name],
            "options": [{"url": to({**chosen, name: value}), "label": word} for value, word in known.items()],
        }
        for name, known in choices.items()
        if name in chosen or name != "subject"
    ]


def filter_query(chosen: AuditFilters) -> str:
    """Return the query string of a page that shows only an audit log."""
    return f"?{urlencode(chosen)}" if chosen else "."
