"""Months that are over and not closed yet: operators review, hold and approve them."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.models import BillingPeriod
from billing.services.invoicing.month_close import close_month, month_reviews
from billing.services.invoicing.month_close.month_reviews import ReviewedMonth, ReviewState
from web.portal.actions import API_PAGE_SIZE, ListPage, list_page, operator_api_call
from web.portal.operators.page_context import (
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    find_row,
    operator_page,
)

STATE_BADGES = {
    ReviewState.REVIEW: "queued",
    ReviewState.HELD: "kept",
    ReviewState.APPROVED: "closing",
    ReviewState.DUE: "closing",
}


@operator_page("month-reviews")
def list_reviews(request: OperatorRequest) -> HttpResponse:
    """List the months that are over and not closed, the latest first."""
    rows = month_reviews.open_reviews(request.now)
    shown = list_page(request, rows, count=rows.count())
    months = month_reviews.with_drafts(shown.rows, now=request.now)
    page = MonthReviewListPage(shown, [(each, STATE_BADGES[each.state]) for each in months])
    return render(request, "operators/invoicing/reviews.html", {"page": page})


@dataclass(frozen=True, slots=True)
class MonthReviewListPage:
    """Months of all tenants that are over and not closed."""

    listing: ListPage
    rows: list[tuple[ReviewedMonth, str]]

    @property
    def hours(self) -> int:
        return int(close_month.review_time().total_seconds()) // 3600

    @property
    def calls(self) -> list[dict[str, str]]:
        return [operator_api_call(_("Months that are not closed"), "ops/month-reviews", limit=API_PAGE_SIZE)]


@operator_page("month-review", methods=SAFE_OR_POST)
def hold_month(request: OperatorRequest, pk: int) -> HttpResponse:
    """Ask for a reason, then keep a month open."""
    found = _find_month(pk)

    def act(why: str) -> str:
        month_reviews.hold_month(found, why=why, actor=request.actor, now=request.now)
        return _("{month} of {name} is held.").format(month=found.label, name=found.tenant.name)

    step = Confirmation(
        title=_("Hold {month} of {name}?").format(month=found.label, name=found.tenant.name),
        verb=_("Hold month"),
        back=reverse("ops-month-reviews"),
        lines=(_("Its invoice is not issued before somebody approves it. Corrections go into the draft."),),
    )
    return confirm_action(request, step, act)


@operator_page("month-review", methods=SAFE_OR_POST)
def approve_month(request: OperatorRequest, pk: int) -> HttpResponse:
    """Ask for confirmation, then let a month close."""
    found = _find_month(pk)

    def act(_why: str) -> str:
        month_reviews.approve_month(found, actor=request.actor, now=request.now)
        return _("{month} of {name} is approved.").format(month=found.label, name=found.tenant.name)

    step = Confirmation(
        title=_("Approve {month} of {name}?").format(month=found.label, name=found.tenant.name),
        verb=_("Approve month"),
        back=reverse("ops-month-reviews"),
        lines=(_("Its invoice is issued with the next run, within ten minutes, and cannot change afterwards."),),
        needs_reason=False,
    )
    return confirm_action(request, step, act)


@operator_page("month-review", methods=SAFE_OR_POST)
def release_month(request: OperatorRequest, pk: int) -> HttpResponse:
    """Ask for confirmation, then withdraw a hold or an approval."""
    found = _find_month(pk)

    def act(_why: str) -> str:
        month_reviews.release_month(found, actor=request.actor, now=request.now)
        return _("{month} of {name} closes when its review is over.").format(month=found.label, name=found.tenant.name)

    step = Confirmation(
        title=_("Withdraw the decision about {month} of {name}?").format(month=found.label, name=found.tenant.name),
        verb=_("Withdraw decision"),
        back=reverse("ops-month-reviews"),
        lines=(_("The month closes when its review is over."),),
        needs_reason=False,
    )
    return confirm_action(request, step, act)


def _find_month(pk: int) -> BillingPeriod:
    rows = BillingPeriod.objects.select_related("tenant")
    return find_row(rows, str(pk), _("Month"), fix=_("Select it from the list of months."))
