"""Audit log page: who changed what, newest first, also as CSV."""

import json
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.http import HttpResponse
from django.shortcuts import render

from ports import clock
from tenants.models import AuditEvent
from tenants.services.authentication import require
from web.http import downloads
from web.portal.actions import api_call
from web.portal.audit import audit_filters, audit_log
from web.portal.authentication import tenant_required

PAGE_SIZE, MAX_CSV_ROWS = 50, 10_000
ACTOR_KIND_WORDS = {"service_account": "machine", "staff": "operator", "system": "automatic"}
CSV_HEADERS = ("at", "actor", "action", "subject", "subject_id", "detail", "request_id", "id")


def filtered_events(request: Any) -> tuple[Any, dict[str, str]]:
    """Return the events that match the query string, and its filters."""
    require(request.roles, "audit.read")
    return audit_filters.filter_events(tenant_events(request), request.GET, request.tenant.time_zone)


def tenant_events(request: Any) -> Any:
    return AuditEvent.objects.filter(tenant_id=request.tenant.pk)


@tenant_required("audit.read")
def show_audit_log(request: Any) -> HttpResponse:
    """Show a page of events."""
    rows, chosen = filtered_events(request)
    if before := request.GET.get("before", "")[:40].replace("\x00", ""):
        rows = rows.filter(id__lt=before)
    found = list(rows[: PAGE_SIZE + 1])
    older = audit_filters.filter_query({**chosen, "before": found[PAGE_SIZE - 1].pk}) if len(found) > PAGE_SIZE else ""
    events = audit_log.describe_events(found[:PAGE_SIZE], currency=request.tenant.currency)
    for event in events:
        event.kind = ACTOR_KIND_WORDS.get(event.actor_kind, "")
    zone = request.tenant.time_zone
    today = clock.now().astimezone(ZoneInfo(zone)).date()
    shown = {
        "events": events,
        "older": older,
        "filters": audit_filters.filter_chips(
            tenant_events(request), chosen, events, audit_filters.filter_query, today=today, also={}
        ),
        "query": urlencode(chosen),
        "paging": bool(before),
        "call": api_call("audit-events", urlencode(audit_filters.api_parameters(chosen, zone), safe=":")),
    }
    return render(request, "audit/audit_log.html", shown)


@tenant_required("audit.read")
def download_audit_log(request: Any) -> HttpResponse:
    """Download the events as CSV, newest first."""
    rows, _ = filtered_events(request)
    cells = (
        (
            event.at.isoformat(),
            event.actor_label or event.actor_kind,
            event.action,
            event.subject_label,
            event.subject_id,
            json.dumps(event.detail, ensure_ascii=False),
            event.request_id,
            event.pk,
        )
        for event in rows[:MAX_CSV_ROWS]
    )
    return downloads.csv_response("audit", CSV_HEADERS, cells)
