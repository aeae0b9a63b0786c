"""Lists of the Stripe page: their filters and CSV columns."""

from billing.domain.stripe_amounts import DECIMALS, from_stripe
from billing.models import StripeDifference, StripeEvent, StripeReconciliationDay
from web.portal.operators.list_specs import OperatorList
from web.portal.operators.operator_lists import csv_money, csv_time


def stripe_amount(each: StripeDifference) -> int | None:
    """Return Stripe's amount in our minor units; None if its currency is unknown."""
    if each.theirs is None or each.currency not in DECIMALS:
        return None
    return from_stripe(each.theirs, each.currency)


def _difference_cells(each: StripeDifference) -> tuple[object, ...]:
    amounts = [csv_money(minor, each.currency) if each.currency else "" for minor in (each.ours, each.booked)]
    theirs = stripe_amount(each)
    return (
        *(each.pk, each.title, each.ref, each.day.day, each.currency, *amounts),
        *("" if theirs is None else csv_money(theirs, each.currency), each.description, csv_time(each.found_at)),
        csv_time(each.seen_at),
    )


def _event_cells(each: StripeEvent) -> tuple[object, ...]:
    return (
        each.pk,
        each.type,
        each.object_id,
        each.why,
        each.attempts,
        csv_time(each.created),
        csv_time(each.received_at),
    )


def _day_cells(each: StripeReconciliationDay) -> tuple[object, ...]:
    counts = (each.charges, each.invoices, each.events, each.differences)
    return csv_time(each.day), *counts, csv_time(each.checked_at), csv_time(each.due_at), each.last_error


DIFFERENCE_LIST = OperatorList(
    name="stripe-differences",
    heads="difference title ref day currency ours booked theirs description found_at seen_at",
    cells=_difference_cells,
    at="found_at",
    search=("ref",),
)
EVENT_LIST = OperatorList(
    name="stripe-events",
    heads="event type object why attempts created_at received_at",
    cells=_event_cells,
    at="received_at",
    search=("type", "object_id", "why", "pk"),
)
DAY_LIST = OperatorList(
    name="stripe-days",
    heads="day charges invoices events differences checked_at due_at error",
    cells=_day_cells,
    at="day",
    by_day=True,
)
