"""The audit page: who changed what, newest first, and the same as CSV."""

import csv
import json
from io import StringIO
from typing import Any
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from tenants.models import AuditEvent
from tenants.portal.acts import call
from tenants.portal.doors import in_tenant
from tenants.services.permissions import require

SHOWN, IN_CSV = 50, 10_000
FILTERS = {"action": "action", "actor": "actor_id", "subject": "subject_id"}
DANGEROUS = ("=", "+", "-", "@", "\t", "\r")


def chosen(request: Any) -> tuple[Any, dict[str, str]]:
    """Return the rows that the address asks for, and what it asks."""
    require(request.roles, "audit.read")
    rows, asked = AuditEvent.objects.filter(tenant_id=request.tenant.pk), {}
    for name, column in FILTERS.items():
        value = request.GET.get(name, "")[:60].replace("\x00", "")
        if value:
            rows, asked[name] = rows.filter(**{column: value}), value
    return rows.order_by("-id"), asked


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
    for event in found:
        event.words = told(event)
    older = urlencode({**asked, "before": found[SHOWN - 1].pk}) if len(found) > SHOWN else ""
    shown = {
        "events": found[:SHOWN],
        "older": older,
        "asked": [(n, v, urlencode({k: w for k, w in asked.items() if k != n})) for n, v in asked.items()],
        "query": urlencode(asked),
        "paging": bool(before),
        "call": call("audit-events", urlencode(asked)),
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
