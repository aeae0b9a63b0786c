"""Disputes of all tenants as operators see them: the list, and one with what can be answered."""

from typing import Any

from django.contrib import messages
from django.db.models import Count, QuerySet, Sum
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from billing.models import CreditNoteLine, Dispute, DisputeStatus
from billing.portal.invoices import lines_of
from billing.services.disputes import answering, asking, outcome, ran, window
from broker.portal.operations import ASKS, OpsRequest, page
from tenants.portal.acts import MOST, ops_call, part
from tenants.portal.refused import because
from tenants.services.refusals import Missing, Refused
from tenants.services.walls import as_staff

LEASES = 8  # of the line, how many the page names


@require_safe
@page("disputes")
def table(request: OpsRequest) -> HttpResponse:
    """Show what waits for an answer, the oldest first; or all there are, the newest first."""
    state = request.GET.get("state", DisputeStatus.OPEN)
    counts = dict(Dispute.objects.values_list("status").annotate(count=Count("pk")).order_by())
    open_ = counts.get(DisputeStatus.OPEN, 0)
    waits = state != "all"
    rows = window.with_left(Dispute.objects.select_related("tenant", "invoice__period", "line"))
    shown: QuerySet[Any] = rows.order_by("-opened_at", "-pk")
    if waits:
        shown = rows.filter(status=DisputeStatus.OPEN).order_by("opened_at", "pk")
    here, every = reverse("ops-disputes"), sum(counts.values())
    told = {
        "part": part(request, shown, count=open_ if waits else every),
        "waits": waits,
        "filters": [
            {"url": here, "label": "Open", "count": open_, "current": waits},
            {"url": f"{here}?state=all", "label": "All", "count": every, "current": not waits},
        ],
        "calls": [
            ops_call("Disputes of all tenants", "ops/disputes", status="open" if waits else "", limit=MOST)
        ],
    }
    return render(request, "ops/disputes.html", told)


@ASKS
@page("dispute")
def dispute(request: OpsRequest, pk: str) -> HttpResponse:
    """Show a dispute; a POST answers it."""
    found = _of(pk)
    refusal: Refused | None = None
    if request.method == "POST":
        try:
            messages.success(request, _answer(request, found))
        except Refused as said:
            refusal = said
            because(request, said.detail)
        else:
            return redirect("ops-dispute", pk=pk)
    with as_staff():
        told = _told(request, _of(pk), refusal)
        return render(request, "ops/dispute.html", told, status=refusal.status if refusal else 200)


def _of(pk: str) -> Dispute:
    with as_staff():
        rows = Dispute.objects.select_related(
            "tenant", "invoice__period", "invoice__tenant", "line", "credit_note"
        )
        found: Dispute | None = window.with_left(rows).filter(pk=pk).first()
    if found is None:
        raise Missing(f"There is no dispute {pk!r}.", fix="Look for it in the list of disputes.")
    return found


def _answer(request: OpsRequest, found: Dispute) -> str:
    answer: dict[str, Any] = {
        "answer": request.POST.get("answer", ""),
        "actor": request.actor,
        "now": request.now,
    }
    if request.POST.get("verb") == "decline":
        answering.decline(found, **answer)
        return "Declined; the tenant reads why."
    typed = request.POST.get("amount", "").strip()
    done = answering.accept(found, minor=asking.amount_of(typed or None, found.currency), **answer)
    return f"Accepted: {done.credit_note} gives it back."


def _told(request: OpsRequest, found: Dispute, refusal: Refused | None) -> dict[str, Any]:
    row = next(row for row in lines_of(found.invoice) if row.line.pk == found.line_id)
    back = CreditNoteLine.objects.filter(line=found.line_id).aggregate(back=Sum("minor", default=0))["back"]
    leases = ran.on(row.line, most=LEASES)
    return {
        "dispute": found,
        "row": row,
        "given_back": back,
        "leases": leases,
        "more": max(row.line.leases - len(leases), 0),
        "paying": outcome.under_way(found.invoice),
        "steps": list(found.steps.order_by("n")),
        "open": found.status == DisputeStatus.OPEN,
        "refusal": refusal,
        "typed": {name: request.POST.get(name, "") for name in ("amount", "answer")},
        "calls": [ops_call("This dispute", f"ops/disputes/{found.pk}")],
    }
