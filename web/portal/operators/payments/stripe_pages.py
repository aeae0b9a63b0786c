"""Stripe page of operators: differences between Stripe and our records, and parked events."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.models import StripeDifference, StripeEvent, StripeEventState
from billing.services.payments.stripe import book_differences, webhook_inbox
from billing.services.reports import stripe_status
from tenants.services import audit
from tenants.services.errors import ObjectNotFound
from web.portal.actions import API_PAGE_SIZE, operator_api_call
from web.portal.operators.operator_lists import read_lists, wants_csv
from web.portal.operators.page_context import (
    POST,
    SAFE_OR_POST,
    Confirmation,
    OperatorRequest,
    confirm_action,
    operator_page,
)
from web.portal.operators.payments.stripe_lists import DAY_LIST, DIFFERENCE_LIST, EVENT_LIST, stripe_amount


@operator_page("stripe")
def show_stripe(request: OperatorRequest) -> Any:
    """Show differences, parked events, and when each day was reconciled."""
    lists = read_lists(request, DIFFERENCE_LIST, EVENT_LIST, DAY_LIST)
    if wants_csv(request):
        return lists.csv(
            (DIFFERENCE_LIST, stripe_status.open_differences),
            (EVENT_LIST, stripe_status.parked_events),
            (DAY_LIST, stripe_status.reconciled_days),
        )
    differences = lists.read(DIFFERENCE_LIST, stripe_status.open_differences())
    shown = {
        "watch": stripe_status.get_stripe_status(now=request.now),
        "differences": differences.with_rows([(each, stripe_amount(each)) for each in differences.rows]),
        "parked": lists.read(EVENT_LIST, stripe_status.parked_events()),
        "days": lists.read(DAY_LIST, stripe_status.reconciled_days()),
        "calls": [
            operator_api_call(_("Differences"), "ops/stripe-differences", limit=API_PAGE_SIZE),
            operator_api_call(
                _("Events that need attention"), "ops/stripe-events", state="parked", limit=API_PAGE_SIZE
            ),
            operator_api_call(_("Reconciled days"), "ops/stripe-days", limit=API_PAGE_SIZE),
        ],
    }
    return render(request, "operators/payments/stripe.html", shown)


@operator_page("stripe.event_retry", methods=POST)
def reprocess_event(request: OperatorRequest, pk: str) -> HttpResponse:
    """Process a parked event again."""
    event = StripeEvent.objects.filter(pk=pk, state=StripeEventState.PARKED).first()
    if event is None:
        raise ObjectNotFound(
            _("Event {pk!r} was not found among the parked events.").format(pk=pk),
            fix=_("Select it from the list on the Stripe page."),
        )
    webhook_inbox.retry_event(event, now=request.now)
    audit.record("stripe.event_retry", event, event.type, actor=request.actor, now=request.now, why=event.why)
    messages.success(request, _("{type} is retried.").format(type=event.type))
    return redirect("ops-stripe")


@operator_page("stripe.acknowledge", methods=SAFE_OR_POST)
def acknowledge_difference(request: OperatorRequest, pk: int) -> HttpResponse:
    """Acknowledge a difference; a reason is required."""
    found = StripeDifference.objects.filter(pk=pk, acknowledged_at=None).first()
    if found is None:
        raise ObjectNotFound(
            _("Difference {pk} was not found among the open differences.").format(pk=pk),
            fix=_("Select it from the list on the Stripe page."),
        )

    def act(why: str) -> str:
        book_differences.acknowledge_difference(found, why=why, actor=request.actor, now=request.now)
        return _("{title} of {ref} is acknowledged.").format(title=found.title, ref=found.ref)

    step = Confirmation(
        title=_("Acknowledge: {title_lower}, {ref}?").format(title_lower=found.title.lower(), ref=found.ref),
        verb=_("Acknowledge"),
        back=reverse("ops-stripe"),
        lines=(
            found.description,
            found.next,
            _("The difference no longer needs attention. If its amount changes, it is reported again."),
        ),
        danger=False,
        hint=_("Recorded with the difference and in the audit log."),
    )
    return confirm_action(request, step, act)
