"""Discounts as the tenant sees them, the least that it agreed to spend, and where it redeems a code."""

from zoneinfo import ZoneInfo

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from billing.models import Discount, Minimum
from billing.portal import calls
from billing.portal.invoices import may_settle
from billing.portal.pages import PageRequest, page
from billing.services.discounts import coupons, giving
from broker.models import Offering
from tenants.portal.refused import because
from tenants.services.permissions import require
from tenants.services.refusals import Refused

SHOWN = 200
LONGEST = 60


@require_http_methods(["GET", "POST"])
@page("billing.read")
def discounts(request: PageRequest) -> HttpResponse:
    """Show every discount and minimum; a POST redeems a code."""
    require(request.roles, "billing.read")  # of the whole tenant, as its invoices are
    refusal: Refused | None = None
    code = request.POST.get("code", "")[:LONGEST]
    if request.method == "POST":
        require(request.roles, "billing.write", ())
        try:
            given = coupons.redeem(request.tenant, code, actor=request.actor, now=request.now)
        except Refused as said:
            refusal = said
            because(request, said.detail)
        else:
            messages.success(request, f"{given.name}: {giving.size(given)} off from this month on.")
            return redirect("discounts")
    rows = Discount.objects.filter(tenant=request.tenant).select_related("campaign")
    shown = {
        "rows": told(
            list(rows.order_by("-given_at", "-pk")[:SHOWN]),
            f"{request.now.astimezone(ZoneInfo(request.tenant.time_zone)):%Y-%m}",
        ),
        "minimums": list(Minimum.objects.filter(tenant=request.tenant).order_by("-valid")[:SHOWN]),
        "code": code,
        "wrong": f"{refusal.detail} {refusal.fix.text}" if refusal else "",
        "may_redeem": may_settle(request),
        "currency": request.tenant.currency,
        "tenant": request.tenant,
        "now": request.now,
        "call": calls.get("/discounts?limit=500"),
        "call_redeem": calls.post("/discounts", {"code": "AUTUMN-26"}),
        "call_minimums": calls.get("/minimums?limit=500"),
    }
    return render(request, "billing/discounts.html", shown, status=refusal.status if refusal else 200)


def told(rows: list[Discount], month: str = "") -> list[dict[str, object]]:
    """Return discounts as pages show them: how much, of what, and whether they hold in a month."""
    wanted = {offering for row in rows for offering in row.offerings}
    labels = dict(Offering.objects.filter(pk__in=wanted).values_list("pk", "label"))
    return [
        {
            "row": row,
            "size": giving.size(row),
            "of": scope(row, labels),
            "holds": row.holds_in(month),
            "ahead": row.first_month > month,
        }
        for row in rows
    ]


def scope(row: Discount, labels: dict[str, str]) -> str:
    """Say of what it is: `H100 whole card, spot`."""
    what = [labels.get(each, each) for each in row.offerings]
    return ", ".join([*what, *(each.replace("_", "-") for each in row.price_classes)]) or "everything"
