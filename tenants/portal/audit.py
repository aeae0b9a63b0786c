"""The audit page: who changed what, newest first, and the same as CSV."""

import csv
import json
from io import StringIO
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from ports import clock
from tenants.models import AuditEvent
from tenants.portal import sifting, trail
from tenants.portal.acts import call
from tenants.portal.doors import in_tenant
from tenants.services.permissions import require

SHOWN, IN_CSV = 50, 10_000
KINDS = {"service_account": "machine", "staff": "operator", "system": "by itself"}
DANGEROUS = ("=", "+", "-", "@", "\t", "\r")


def chosen(request: Any) -> tuple[Any, dict[str, str]]:
    """Return the rows that the address asks for, and what it asks."""
    require(request.roles, "audit.read")
    return sifting.sifted(whole(request), request.GET, request.tenant.time_zone)


def whole(request: Any) -> Any:
    return AuditEvent.objects.filter(tenant_id=request.tenant.pk)


@require_GET
@in_tenant("audit.read")
def page(request: Any) -> HttpResponse:
    """Show a page of events."""
    rows, asked = chosen(request)
    if before := request.GET.get("before", "")[:40].replace("\x00", ""):
        rows = rows.filter(id__lt=before)
    found = list(rows[: SHOWN + 1])
    older = sifting.address({**asked, "before": found[SHOWN - 1].pk}) if len(found) > SHOWN else ""
    events = trail.tell(found[:SHOWN], currency=request.tenant.currency)
    for event in events:
        event.kind = KINDS.get(event.actor_kind, "")
    zone = request.tenant.time_zone
    today = clock.now().astimezone(ZoneInfo(zone)).date()
    shown = {
        "events": events,
        "older": older,
        "filters": sifting.chips(whole(request), asked, events, sifting.address, today=today, also={}),
        "query": urlencode(asked),
        "paging": bool(before),
        "call": call("audit-events", urlencode(sifting.for_api(asked, zone), safe=":")),
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
