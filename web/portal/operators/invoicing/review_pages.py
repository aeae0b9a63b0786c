"""Months that are over and not closed yet: operators review, hold and approve them."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.models import BillingPeriod
from billing.services.invoicing.month_close import close_month, month_reviews
from billing.services.invoicing.month_close.month_reviews import ReviewState
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.operators.list_filters import ListFilter
from web.portal.operators.list_specs import ListState, OperatorList
from web.portal.operators.operator_lists import FilteredList, csv_time, read_lists, wants_csv
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


def _month_cells(each: BillingPeriod) -> tuple[object, ...]:
    return (
        *(each.label, each.tenant_id, each.tenant.name, csv_time(each.span.lower), csv_time(each.span.upper)),
        *(csv_time(each.review_since), csv_time(each.held_at), each.held_reason, csv_time(each.approved_at)),
        *(each.decided_by, each.blocked_reason),
    )


REVIEW_LIST = OperatorList(
    name="month-reviews",
    heads=(
        "month tenant tenant_name begins_at ends_at review_since held_at held_reason approved_at decided_by "
        "blocked_reason"
    ),
    cells=_month_cells,
    tenant="tenant_id",
    at="span__startswith",
    states=(
        ListState("", gettext_lazy("All")),
        ListState("held", gettext_lazy("Held"), Q(held_at__isnull=False)),
        ListState("approved", gettext_lazy("Approved"), Q(approved_at__isnull=False)),
        ListState("blocked", gettext_lazy("Blocked"), ~Q(blocked_reason="")),
    ),
    search=("label", "tenant__name", "held_reason", "blocked_reason"),
)


@operator_page("month-reviews")
def list_reviews(request: OperatorRequest) -> Any:
    """List the months that are over and not closed, the latest first."""
    lists = read_lists(request, REVIEW_LIST)
    rows = month_reviews.open_reviews(request.now)
    if wants_csv(request):
        return lists.csv((REVIEW_LIST, lambda: rows))
    listing = lists.read(REVIEW_LIST, rows)
    months = month_reviews.with_drafts(listing.rows, now=request.now)
    page = MonthReviewListPage(
        listing.with_rows([(each, STATE_BADGES[each.state]) for each in months]), lists.count_states(REVIEW_LIST, rows)
    )
    return render(request, "operators/invoicing/reviews.html", {"page": page})


@dataclass(frozen=True, slots=True)
class MonthReviewListPage:
    """Months of all tenants that are over and not closed."""

    listing: FilteredList
    filter: ListFilter

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
