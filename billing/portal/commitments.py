"""What a tenant committed to: what of it is used this month, day by day, and what is owed unused."""

from datetime import datetime
from zoneinfo import ZoneInfo

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from billing.models import Commitment
from billing.portal import calls
from billing.portal.commitment_charts import KEYS, SERIES, shown
from billing.portal.pages import PageRequest, page
from billing.services import coverage
from tenants.services.permissions import require

SHOWN = 200


@require_safe
@page("billing.read")
def commitments(request: PageRequest) -> HttpResponse:
    """Show every commitment, and of those that hold how much is used."""
    require(request.roles, "billing.read")  # of the whole tenant, as its invoices are
    rows = Commitment.objects.filter(tenant=request.tenant).select_related("offering")
    listed = list(rows.order_by("-valid", "pk")[:SHOWN])
    holds = [each for each in listed if request.now in each.valid]
    zone = ZoneInfo(request.tenant.time_zone)
    drawn = [
        shown(found, request.now, zone) for each in holds if (found := coverage.of(each, now=request.now))
    ]
    told = {
        "drawn": drawn,
        "rows": [{"row": each, "state": state(each, request.now)} for each in listed],
        "holds": len(holds),
        "keys": KEYS,
        "series": SERIES,
        "month": f"{request.now.astimezone(zone):%B}",
        "tenant": request.tenant,
        "call": calls.get("/commitments?limit=500"),
        "call_one": calls.get(f"/commitments/{holds[0].pk}") if holds else "",
    }
    return render(request, "billing/commitments.html", told)


def state(agreed: Commitment, now: datetime) -> tuple[str, str]:
    """Return the badge of a commitment and its word."""
    if now in agreed.valid:
        return "active", "now"
    return ("queued", "later") if agreed.valid.lower > now else ("released", "over")
