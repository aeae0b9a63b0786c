"""Discounts page of a tenant: its discounts, its minimum spend, and redeeming a code."""

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from billing.models import Discount, Minimum
from billing.services.agreements.discounts import coupons, tenant_discounts
from broker.models import Offering
from tenants.services.authentication import require
from tenants.services.errors import ProblemError
from web.http.middleware import set_rejection_reason
from web.portal.invoices.invoice_pages import may_pay
from web.portal.page_context import GET_OR_POST, PageRequest, tenant_page

MAX_DISCOUNTS = 200
MAX_CODE_LENGTH = 60


@tenant_page("billing.read", methods=GET_OR_POST)
def list_discounts(request: PageRequest) -> HttpResponse:
    """List every discount and minimum; a POST redeems a code."""
    require(request.roles, "billing.read")  # of the whole tenant, as its invoices are
    refusal: ProblemError | None = None
    code = request.POST.get("code", "")[:MAX_CODE_LENGTH]
    if request.method == "POST":
        require(request.roles, "billing.write", ())
        try:
            given = coupons.redeem_coupon(request.tenant, code, actor=request.actor, now=request.now)
        except ProblemError as problem:
            refusal = problem
            set_rejection_reason(request, problem.detail)
        else:
            messages.success(
                request,
                _("{given_name}: {given} off, starting this month.").format(
                    given_name=given.name, given=tenant_discounts.format_discount(given)
                ),
            )
            return redirect("discounts")
    rows = Discount.objects.filter(tenant=request.tenant).select_related("campaign")
    month = f"{request.now.astimezone(ZoneInfo(request.tenant.time_zone)):%Y-%m}"
    page = DiscountPage(
        rows=discount_rows(list(rows.order_by("-given_at", "-pk")[:MAX_DISCOUNTS]), month),
        minimums=list(Minimum.objects.filter(tenant=request.tenant).order_by("-valid")[:MAX_DISCOUNTS]),
        code=code,
        wrong=f"{refusal.detail} {refusal.fix.text}" if refusal else "",
        may_redeem=may_pay(request),
    )
    return render(request, "discounts/discounts.html", {"page": page}, status=refusal.status if refusal else 200)


@dataclass(frozen=True, slots=True)
class DiscountPage:
    """Discounts and minimum spend of a tenant, with the form that redeems a code."""

    rows: list[dict[str, object]]
    minimums: list[Minimum]
    code: str
    wrong: str
    may_redeem: bool


def discount_rows(rows: list[Discount], month: str = "") -> list[dict[str, object]]:
    """Return discounts as table rows: size, scope, and whether they apply in a month."""
    wanted = {offering for row in rows for offering in row.offerings}
    labels = dict(Offering.objects.filter(pk__in=wanted).values_list("pk", "label"))
    return [
        {
            "row": row,
            "size": tenant_discounts.format_discount(row),
            "of": discount_scope(row, labels),
            "holds": row.holds_in(month),
            "ahead": row.first_month > month,
        }
        for row in rows
    ]


def discount_scope(row: Discount, labels: dict[str, str]) -> str:
    """Return what a discount applies to: `H100 SXM 80GB whole GPU, spot`."""
    what = [labels.get(each, each) for each in row.offerings]
    return ", ".join([*what, *(each.replace("_", "-") for each in row.price_classes)]) or "everything"
