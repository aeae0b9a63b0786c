"""Queue page: queued leases, reason, position, and what could start now instead."""

from typing import Any

from django.db.models.functions import Coalesce
from django.http import HttpResponse
from django.shortcuts import render

from broker.domain.lifecycle.states import LeaseState
from web.portal import api_examples
from web.portal.leases.lease_table import lease_rows, prefetch_for_rows
from web.portal.page_context import PageRequest, may_in_project, tenant_page
from web.portal.queue.suggestions import start_now_suggestions

MAX_LEASES = 30


@tenant_page("leases.read")
def show_queue(request: PageRequest) -> HttpResponse:
    waiting = request.scope.leases().filter(state=LeaseState.QUEUED.value)
    leases = list(prefetch_for_rows(waiting.order_by(Coalesce("requeued_at", "created_at"), "pk"))[: MAX_LEASES + 1])
    if len(leases) <= MAX_LEASES:
        request.scope.known["queued"] = len(leases)
    rows = lease_rows(leases[:MAX_LEASES], currency=request.tenant.currency, now=request.now)
    context: dict[str, Any] = {
        "waiting": list(zip(rows, start_now_suggestions(request, rows), strict=True)),
        "more": len(leases) > MAX_LEASES,
        "may_write": may_in_project(request, "leases.write"),
        "project": request.project,
        "now": request.now,
        "currency": request.tenant.currency,
        "call": api_examples.curl_list("/leases", request.scope, state="queued", limit=MAX_LEASES),
    }
    return render(request, "queue/queue.html", context)
