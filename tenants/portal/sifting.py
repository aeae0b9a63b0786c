"""The filters of a trail: who, what, on which day, to what. They stand in its address and in its call."""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from tenants.models import AuditEvent

RECENT = 2000  # events whose actors and actions are offered as filters
FILTERS = {"action": "action", "actor": "actor_id", "subject": "subject_id"}
LABELS = {"action": "What", "actor": "Who", "day": "Day", "subject": "On"}
DAY, YEARS = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII), range(1970, 3000)
Asked = dict[str, str]


def sifted(rows: Any, query: Mapping[str, str], time_zone: str) -> tuple[Any, Asked]:
    """Return the rows that an address asks for, newest first, and what it asks."""
    asked: Asked = {}
    for name, column in FILTERS.items():
        value = query.get(name, "")[:60].replace("\x00", "")
        if value:
            rows, asked[name] = rows.filter(**{column: value}), value
    if day := a_day(query.get("day", "")):
        begin, end = borders(day, time_zone)
        rows, asked["day"] = rows.filter(at__gte=begin, at__lt=end), day.isoformat()
    return rows.order_by("-id"), asked


def a_day(text: str) -> date | None:
    """Read a day of an address; None where it is none, or lies where some time zone's clock ends."""
    try:
        day = date.fromisoformat(text) if DAY.fullmatch(text) else None
    except ValueError:
        return None
    return day if day and day.year in YEARS else None


def borders(day: date, time_zone: str) -> tuple[datetime, datetime]:
    """Return when a day begins and ends in a time zone."""
    zone = ZoneInfo(time_zone)
    first, last = datetime.combine(day, time(), zone), datetime.combine(day + timedelta(days=1), time(), zone)
    return first.astimezone(UTC), last.astimezone(UTC)


def for_api(asked: Asked, time_zone: str) -> Asked:
    """Write what an address asks in the words of the API."""
    query = {name: value for name, value in asked.items() if name in FILTERS}
    if "day" in asked:
        begin, end = borders(date.fromisoformat(asked["day"]), time_zone)
        query |= {"at__gte": f"{begin:%Y-%m-%dT%H:%M:%SZ}", "at__lt": f"{end:%Y-%m-%dT%H:%M:%SZ}"}
    return query


def chips(
    rows: Any, asked: Asked, events: Iterable[Any], to: Callable[[Asked], str], *, today: date, also: Asked
) -> list[dict[str, Any]]:
    """Return the filters: what is chosen, with the address that removes it, or what may be chosen. One statement.

    `also` is what else the address of the page holds. Each event gets the addresses that show only its like.
    """
    for event in events:
        event.only = {name: to({**asked, name: getattr(event, column)}) for name, column in FILTERS.items()}
    latest = rows.order_by("-id").values("pk")[:RECENT]
    acts = AuditEvent.objects.filter(pk__in=latest).values_list("action", "actor_id", "actor_label")
    seen = sorted(acts.distinct())
    actors = {pk: label for _, pk, label in seen if pk}
    choices: dict[str, dict[str, str]] = {
        "action": {action: action for action, _, _ in seen},
        "actor": dict(sorted(actors.items(), key=lambda each: each[1])),
        "day": {
            (today - timedelta(days=n)).isoformat(): word for n, word in enumerate(("Today", "Yesterday"))
        },
        "subject": {event.subject_id: event.subject_label for event in events if event.subject_label},
    }
    return [
        {
            "name": name,
            "label": LABELS[name],
            "value": known.get(asked[name], asked[name]) if name in asked else "",
            "remove": to({k: v for k, v in asked.items() if k != name}),
            "kept": [(k, v) for k, v in {**also, **asked}.items() if k != name],
            "options": [{"url": to({**asked, name: value}), "label": word} for value, word in known.items()],
        }
        for name, known in choices.items()
        if name in asked or name != "subject"
    ]


def address(asked: Asked) -> str:
    """Return the address of a page that holds nothing but a trail."""
    return f"?{urlencode(asked)}" if asked else "."
