"""Page of a tenant's commitments: their use this month, and what is owed unused."""

from datetime import datetime
from zoneinfo import ZoneInfo

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from billing.models import Commitment
from billing.services.agreements import commitment_coverage
from tenants.services.authentication import require
from web.portal import api_examples
from web.portal.commitments.commitment_charts import COVERAGE_LEGEND, COVERAGE_SERIES, coverage_panel
from web.portal.page_context import SAFE, PageRequest, tenant_page

MAX_COMMITMENTS = 200


@tenant_page("billing.read", methods=SAFE)
def list_commitments(request: PageRequest) -> HttpResponse:
    """List every commitment, with the use of those in force."""
    require(request.roles, "billing.read")  # of the whole tenant, as its invoices are
    rows = Commitment.objects.filter(tenant=request.tenant).select_related("offering")
    listed = list(rows.order_by("-valid", "pk")[:MAX_COMMITMENTS])
    current = [each for each in listed if request.now in each.valid]
    zone = ZoneInfo(request.tenant.time_zone)
    panels = [
        coverage_panel(found, request.now, zone)
        for each in current
        if (found := commitment_coverage.current_coverage(each, now=request.now))
    ]
    context = {
        "panels": panels,
        "rows": [{"commitment": each, "state": commitment_badge(each, request.now)} for each in listed],
        "current_count": len(current),
        "keys": COVERAGE_LEGEND,
        "series": COVERAGE_SERIES,
        "month": f"{request.now.astimezone(zone):%B}",
        "tenant": request.tenant,
        "call": api_examples.curl_get("/commitments?limit=500"),
        "call_one": api_examples.curl_get(f"/commitments/{current[0].pk}") if current else "",
    }
    return render(request, "commitments/commitments.html", context)


def commitment_badge(agreed: Commitment, now: datetime) -> tuple[str, str]:
    """Return the state badge of a commitment and its word."""
    if now in agreed.valid:
        return "active", _("active")
    return ("queued", _("scheduled")) if agreed.valid.lower > now else ("released", _("ended"))
