"""Month close page: the checklist, what is missing, and a button that closes."""

import re

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from billing.services.invoicing.month_close import close_checklist, close_month
from tenants.services.rls import staff_scope
from web.portal.actions import operator_api_call
from web.portal.operators.page_context import SAFE_OR_POST, OperatorRequest, operator_page

MONTH_LABEL = re.compile(r"[0-9]{4}-[0-9]{2}")
MAX_MONTHS = 24
MAX_CLOSED_AT_ONCE = 100  # months closed within one page request; the periodic task closes all


@operator_page("month-close", methods=SAFE_OR_POST)
def show_month_close(request: OperatorRequest) -> HttpResponse:
    """Show a month's checklist; a POST closes every month that is ready."""
    if request.method == "POST":
        _close_due_months(request)
        return redirect(request.get_full_path())
    with staff_scope():
        labels = close_checklist.month_labels(now=request.now)[:MAX_MONTHS]
        label = _chosen_month(request, labels)
        shown = {
            "checklist": close_checklist.build_checklist(label, now=request.now) if label else None,
            "months": [
                {"url": f"{reverse('ops-month-close')}?month={each}", "label": each, "current": each == label}
                for each in labels[:6]
            ],
            "calls": [operator_api_call(_("This checklist"), f"ops/month-closes/{label}")] if label else [],
        }
        return render(request, "operators/invoicing/month_close.html", shown)


def _chosen_month(request: OperatorRequest, labels: list[str]) -> str:
    """Return the month in the query string, else the newest past one."""
    month = request.GET.get("month", "")
    if MONTH_LABEL.fullmatch(month) and month in labels:
        return month
    past = [label for label in labels if label < f"{request.now:%Y-%m}"]
    return (past or labels or [""])[0]


def _close_due_months(request: OperatorRequest) -> None:
    done = close_month.close_due_months(now=request.now, most=MAX_CLOSED_AT_ONCE)
    text = ngettext("{n} month closed.", "{n} months closed.", done.months).format(n=done.months)
    messages.success(request, text if done.months else _("No month could be closed now."))
    for waiting in done.waiting[:MAX_MONTHS]:
        messages.warning(
            request,
            _("{waiting_label} of {tenant_id}: {why}").format(
                waiting_label=waiting.label, tenant_id=waiting.tenant_id, why=waiting.why
            ),
        )
    for gap in done.gaps[:MAX_MONTHS]:
        messages.warning(request, _("No price: {gap}").format(gap=gap))
