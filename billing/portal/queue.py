"""The queue: what of ours waits, why, where in line, and what would start now instead."""

from typing import Any

from django.db.models.functions import Coalesce
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from billing.portal import calls
from billing.portal.pages import PageRequest, may, page
from billing.portal.rows import loaded, rows
from billing.portal.suggestions import instead
from broker.domain.states import LeaseState

SHOWN = 30


@require_GET
@page("leases.read")
def queue(request: PageRequest) -> HttpResponse:
    waiting = request.scope.leases().filter(state=LeaseState.QUEUED.value)
    listed = list(loaded(waiting.order_by(Coalesce("waits_since", "created_at"), "pk"))[: SHOWN + 1])
    if len(listed) <= SHOWN:
        request.scope.known["queued"] = len(listed)
    shown = rows(listed[:SHOWN], currency=request.tenant.currency, now=request.now)
    context: dict[str, Any] = {
        "waiting": [(row, others) for row, others in zip(shown, instead(request, shown), strict=True)],
        "more": len(listed) > SHOWN,
        "may_write": may(request, "leases.write"),
        "project": request.project,
        "now": request.now,
        "currency": request.tenant.currency,
        "call": calls.listing("/leases", request.scope, state="queued", limit=SHOWN),
    }
    return render(request, "billing/queue.html", context)
