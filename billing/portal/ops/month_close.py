"""Closing a month: what must be so, what is missing, and a button for what could close now."""

import re

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from billing.services import closing, month_close
from broker.portal.operations import OpsRequest, page
from tenants.portal.acts import ops_call
from tenants.services.walls import as_staff

LABEL = re.compile(r"[0-9]{4}-[0-9]{2}")
SHOWN = 24
AT_ONCE = 100  # while somebody waits for the page; the run that comes by itself takes all


@require_http_methods(["GET", "HEAD", "POST"])
@page("month-close")
def month(request: OpsRequest) -> HttpResponse:
    """Show a month's checklist; a POST closes whatever is over and can be."""
    if request.method == "POST":
        _close(request)
        return redirect(request.get_full_path())
    with as_staff():
        labels = month_close.labels()[:SHOWN]
        label = _asked(request, labels)
        shown = {
            "checklist": month_close.look(label, now=request.now) if label else None,
            "months": [
                {"url": f"{reverse('ops-month-close')}?month={each}", "label": each, "current": each == label}
                for each in labels[:6]
            ],
            "calls": [ops_call("This checklist", f"ops/month-closes/{label}")] if label else [],
        }
        return render(request, "ops/month_close.html", shown)


def _asked(request: OpsRequest, labels: list[str]) -> str:
    """Return the month that the address asks for; else the newest that is not the present one."""
    asked = request.GET.get("month", "")
    if LABEL.fullmatch(asked) and asked in labels:
        return asked
    past = [label for label in labels if label < f"{request.now:%Y-%m}"]
    return (past or labels or [""])[0]


def _close(request: OpsRequest) -> None:
    done = closing.close_due(now=request.now, most=AT_ONCE)
    said = f"{done.months} month{'s' if done.months != 1 else ''} closed."
    messages.success(request, said if done.months else "Nothing was there that could be closed now.")
    for waiting in done.waiting[:SHOWN]:
        messages.warning(request, f"{waiting.label} of {waiting.tenant_id}: {waiting.why}")
    for gap in done.gaps[:SHOWN]:
        messages.warning(request, f"No price: {gap}")
