"""The audit page: who changed what, newest first, and the same as CSV."""

import csv
import json
import re
from datetime import UTC, date, datetime, time, timedelta
from io import StringIO
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from ports import clock
from tenants.models import AuditEvent
from tenants.portal import trail
from tenants.portal.acts import call
from tenants.portal.doors import in_tenant
from tenants.services.permissions import require

SHOWN, IN_CSV = 50, 10_000
RECENT = 2000  # events whose actors and actions are offered as filters
FILTERS = {"action": "action", "actor": "actor_id", "subject": "subject_id"}
LABELS = {"action": "What", "actor": "Who", "day": "Day", "subject": "On"}
KINDS = {"service_account": "machine", "staff": "operator", "system": "by itself"}
DAY, YEARS = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII), range(1970, 3000)
DANGEROUS = ("=", "+", "-", "@", "\t", "\r")


def chosen(request: Any) -> tuple[Any, dict[str, str]]:
    """Return the rows that the address asks for, and what it asks."""
    require(request.roles, "audit.read")
    rows, asked = AuditEvent.objects.filter(tenant_id=request.tenant.pk), {}
    for name, column in FILTERS.items():
        value = request.GET.get(name, "")[:60].replace("\x00", "")
        if value:
            rows, asked[name] = rows.filter(**{column: value}), value
    if day := a_day(request.GET.get("day", "")):
        begin, end = borders(day, request.tenant.time_zone)
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
    """Return when a day begins and ends where the tenant is."""
    zone = ZoneInfo(time_zone)
    first, last = datetime.combine(day, time(), zone), datetime.combine(day + timedelta(days=1), time(), zone)
    return first.astimezone(UTC), last.astimezone(UTC)


def as_call(asked: dict[str, str], time_zone: str) -> str:
    """Write what the address asks as the query of the API."""
    query = {name: value for name, value in asked.items() if name in FILTERS}
    if "day" in asked:
        begin, end = borders(date.fromisoformat(asked["day"]), time_zone)
        query |= {"at__gte": f"{begin:%Y-%m-%dT%H:%M:%SZ}", "at__lt": f"{end:%Y-%m-%dT%H:%M:%SZ}"}
    return urlencode(query, safe=":")


def filters(request: Any, asked: dict[str, str], events: list[AuditEvent]) -> list[dict[str, Any]]:
    """Return the filters as chips: what is chosen with the address that removes it, or what may be chosen."""
    latest = AuditEvent.objects.filter(tenant_id=request.tenant.pk).order_by("-id").values("pk")[:RECENT]
    acts = (
        AuditEvent.objects.filter(pk__in=latest).values_list("action", "actor_id", "actor_label").distinct()
    )
    seen = list(acts)
    actors = {pk: label for _, pk, label in seen if pk}
    today = clock.now().astimezone(ZoneInfo(request.tenant.time_zone)).date()
    days = {(today - timedelta(days=n)).isoformat(): word for n, word in enumerate(("Today", "Yesterday"))}
    choices = {
        "action": {action: action for action, _, _ in sorted(seen)},
        "actor": dict(sorted(actors.items(), key=lambda each: each[1])),
        "day": days,
        "subject": {event.subject_id: event.subject_label for event in events if event.subject_label},
    }
    return [
        {
            "name": name,
            "label": LABELS[name],
            "value": known.get(asked[name], asked[name]) if name in asked else "",
            "remove": address({k: v for k, v in asked.items() if k != name}),
            "kept": [(k, v) for k, v in asked.items() if k != name],
            "options": [{"url": address({**asked, name: v}), "label": word} for v, word in known.items()],
        }
        for name, known in choices.items()
        if name in asked or name != "subject"
    ]


def address(asked: dict[str, str]) -> str:
    return f"?{urlencode(asked)}" if asked else "."


def words(value: Any) -> str:
    """Write a value of an event's detail for people; nothing for what is empty."""
    if isinstance(value, list):
        return ", ".join(words(inner) for inner in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {words(inner)}" for name, inner in value.items())
    return "" if value is None else str(value)


def told(event: AuditEvent) -> str:
    """Write an event's whole detail for people."""
    return " · ".join(f"{name} {words(value)}" for name, value in event.detail.items() if words(value))


@require_GET
@in_tenant("audit.read")
def page(request: Any) -> HttpResponse:
    """Show a page of events."""
    rows, asked = chosen(request)
    if before := request.GET.get("before", "")[:40].replace("\x00", ""):
        rows = rows.filter(id__lt=before)
    found = list(rows[: SHOWN + 1])
    older = address({**asked, "before": found[SHOWN - 1].pk}) if len(found) > SHOWN else ""
    events = trail.tell(found[:SHOWN], currency=request.tenant.currency)
    for event in events:
        event.kind = KINDS.get(event.actor_kind, "")
        event.only = {
            name: address({**asked, name: getattr(event, column)}) for name, column in FILTERS.items()
        }
    shown = {
        "events": events,
        "older": older,
        "filters": filters(request, asked, events),
        "query": urlencode(asked),
        "paging": bool(before),
        "call": call("audit-events", as_call(asked, request.tenant.time_zone)),
    }
    return render(request, "tenants/audit.html", shown)


@require_GET
@in_tenant("audit.read")
def download(request: Any) -> HttpResponse:
    """Answer with the events as CSV, newest first."""
    rows, _ = chosen(request)
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(["at", "actor", "action", "subject", "subject_id", "detail", "request_id", "id"])
    for event in rows[:IN_CSV]:
        cells = [
            event.at.isoformat(),
            event.actor_label or event.actor_kind,
            event.action,
            event.subject_label,
            event.subject_id,
            json.dumps(event.detail, ensure_ascii=False),
            event.request_id,
            event.pk,
        ]
        writer.writerow([f"'{cell}" if cell.startswith(DANGEROUS) else cell for cell in cells])
    answer = HttpResponse(text.getvalue(), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="audit.csv"'
    return answer
