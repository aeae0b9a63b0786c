"""Operators' API of Stripe reconciliation: differences, events and compared days."""

from rest_framework import serializers

from billing.domain.stripe_reconciliation import DifferenceKind
from billing.models import StripeDifference, StripeEvent, StripeEventState, StripeReconciliationDay
from web.api.base_views import OLDEST_FIRST
from web.api.operators.base_views import CrossTenantViewSet
from web.http.filters import QueryFilter


class StripeDifferenceOut(serializers.ModelSerializer[StripeDifference]):
    """A mismatch between our payment record, Stripe and the ledger for one payment.

    Amounts are integers in each side's minor units.
    """

    day = serializers.DateField(source="day.day")
    kind = serializers.ChoiceField(choices=[each.value for each in DifferenceKind])
    ref = serializers.CharField(help_text="The payment, or the unknown invoice in Stripe.")
    description = serializers.CharField(help_text="Human-readable explanation of the difference.")
    next_step = serializers.CharField(source="next", help_text="What to do about it.")
    theirs = serializers.IntegerField(
        allow_null=True, help_text="Stripe's integer; it counts some currencies its own way."
    )
    returned = serializers.IntegerField(
        source="back", allow_null=True, help_text="Amount returned by a refund or chargeback."
    )
    acknowledge_reason = serializers.CharField(source="why", help_text="Why it was acknowledged.")

    class Meta:
        model = StripeDifference
        fields = (
            *("id", "day", "kind", "ref", "description", "next_step", "currency"),
            *("ours", "theirs", "booked", "returned", "found_at", "seen_at"),
            *("acknowledged_at", "acknowledged_by", "acknowledge_reason"),
        )


class OperatorStripeDifferenceViewSet(CrossTenantViewSet):
    """Differences that still exist; acknowledged ones need no attention."""

    serializer_class, audit_action = StripeDifferenceOut, "stripe"
    rows = StripeDifference.objects.select_related("day")
    sorts = OLDEST_FIRST
    filters = {"kind": QueryFilter("kind", choices=tuple(each.value for each in DifferenceKind))}


class StripeEventOut(serializers.ModelSerializer[StripeEvent]):
    """An event of Stripe and its outcome.

    Its body is not stored; it is looked up at Stripe.
    """

    state = serializers.ChoiceField(choices=StripeEventState.choices)
    outcome = serializers.CharField(source="why", help_text="Result, or why it is parked.")
    recovered = serializers.BooleanField(
        source="found", help_text="Webhook was missed; the event was found in Stripe's list."
    )

    class Meta:
        model = StripeEvent
        fields = ("id", "type", "object_id", "api_version", "created", "received_at", "recovered", "state", "outcome")


class OperatorStripeEventViewSet(CrossTenantViewSet):
    """Events of Stripe; those that need attention are `state=parked`."""

    serializer_class, rows, audit_action = StripeEventOut, StripeEvent.objects.all(), "stripe"
    filters = {"state": QueryFilter("state", choices=tuple(StripeEventState.values)), "type": QueryFilter("type")}


class StripeDayOut(serializers.ModelSerializer[StripeReconciliationDay]):
    """A day's reconciliation: last check, counts, open differences and last error."""

    class Meta:
        model = StripeReconciliationDay
        fields = ("id", "day", "checked_at", "charges", "invoices", "events", "differences", "last_error")


class OperatorStripeDayViewSet(CrossTenantViewSet):
    """Reconciliation status by day; the last thirty days are checked every night."""

    serializer_class, rows, audit_action = StripeDayOut, StripeReconciliationDay.objects.all(), "stripe"
