"""Operators' API of Stripe reconciliation: differences, events and compared days."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from billing.domain.money import EXPONENTS
from billing.domain.stripe_amounts import DECIMALS, from_stripe
from billing.domain.stripe_reconciliation import DifferenceKind
from billing.models import StripeDifference, StripeEvent, StripeEventState, StripeReconciliationDay
from billing.services.payments.stripe import book_differences, webhook_inbox
from tenants.services import audit
from tenants.services.errors import ProblemError
from web.api.amounts import AmountField, MoneyOut, money_out
from web.api.base_views import OLDEST_FIRST
from web.api.operators.base_views import CrossTenantViewSet, OperatorAct, ReasonIn, require_field
from web.http.filters import QueryFilter


class NotOpen(ProblemError):
    """What was to be settled is settled."""

    code, status, title = "not-open", 409, "It needs no attention"


class KnownAmountField(AmountField):
    """Amount of a difference; null where there is none, or its currency is unknown."""

    def to_representation(self, row: StripeDifference) -> dict[str, str] | None:
        return super().to_representation(row) if row.currency in EXPONENTS else None


class StripeDifferenceOut(serializers.ModelSerializer[StripeDifference]):
    """A mismatch between our payment record, Stripe and the ledger for one payment."""

    id = serializers.CharField(source="pk")
    day = serializers.DateField(source="day.day")
    kind = serializers.ChoiceField(choices=[each.value for each in DifferenceKind])
    subject_id = serializers.CharField(source="ref", help_text="The payment, or the unknown invoice in Stripe.")
    description = serializers.CharField(help_text="Human-readable explanation of the difference.")
    fix = serializers.CharField(source="next", help_text="What to do about it.")
    ours = KnownAmountField("ours", allow_null=True, help_text="By our payment record.")
    theirs = serializers.SerializerMethodField(help_text="By Stripe.")
    booked = KnownAmountField("booked", allow_null=True, help_text="By the ledger.")
    returned_amount = KnownAmountField("back", allow_null=True, help_text="Returned by a refund or chargeback.")
    acknowledge_reason = serializers.CharField(source="why", help_text="Why it was acknowledged.")

    class Meta:
        model = StripeDifference
        fields = (
            *("id", "day", "kind", "subject_id", "description", "fix", "currency"),
            *("ours", "theirs", "booked", "returned_amount", "found_at", "seen_at"),
            *("acknowledged_at", "acknowledged_by", "acknowledge_reason"),
        )

    @extend_schema_field(MoneyOut(allow_null=True))
    def get_theirs(self, found: StripeDifference) -> dict[str, str] | None:
        if found.theirs is None or found.currency not in EXPONENTS or found.currency not in DECIMALS:
            return None
        return money_out(from_stripe(found.theirs, found.currency), found.currency)


class DifferenceAcknowledgement(ReasonIn):
    acknowledged = serializers.ChoiceField(choices=[True], help_text="It needs no attention any more.")


class OperatorStripeDifferenceViewSet(CrossTenantViewSet):
    """Differences that still exist; acknowledged ones need no attention."""

    area = "billing"
    serializer_class, audit_action = StripeDifferenceOut, "stripe"
    rows = StripeDifference.objects.select_related("day")
    sorts = OLDEST_FIRST
    filters = {"kind": QueryFilter("kind", choices=tuple(each.value for each in DifferenceKind))}

    @OperatorAct(DifferenceAcknowledgement)
    def partial_update(self, found: StripeDifference, body: dict[str, Any]) -> StripeDifference:
        """Acknowledge a difference; if its amount changes, it is reported again."""
        require_field(body, "acknowledged")
        if found.acknowledged_at is not None:
            raise NotOpen("This difference is acknowledged already.", fix="Choose one that is open.")
        book_differences.acknowledge_difference(found, why=require_field(body, "reason"), **self.by)
        return found


class StripeEventOut(serializers.ModelSerializer[StripeEvent]):
    """An event of Stripe and its outcome.

    Its body is not stored; it is looked up at Stripe.
    """

    state = serializers.ChoiceField(choices=StripeEventState.choices)
    outcome = serializers.CharField(source="why", help_text="Result, or why it is parked.")
    created_at = serializers.DateTimeField(source="created")
    recovered = serializers.BooleanField(
        source="found", help_text="Webhook was missed; the event was found in Stripe's list."
    )

    class Meta:
        model = StripeEvent
        fields = (
            "id",
            "type",
            "object_id",
            "api_version",
            "created_at",
            "received_at",
            "recovered",
            "state",
            "outcome",
        )


class OperatorStripeEventViewSet(CrossTenantViewSet):
    """Events of Stripe; those that need attention are `state=parked`."""

    area = "billing"
    serializer_class, rows, audit_action = StripeEventOut, StripeEvent.objects.all(), "stripe"
    filters = {"state": QueryFilter("state", choices=tuple(StripeEventState.values)), "type": QueryFilter("type")}

    @OperatorAct(audit_action="stripe.event_retry")
    def retry(self, event: StripeEvent) -> StripeEvent:
        """Process a parked event again. 409 for any other."""
        if event.state != StripeEventState.PARKED:
            raise NotOpen(f"This event is {event.state}.", fix="Choose a parked one.")
        webhook_inbox.retry_event(event, now=self.now)
        audit.record("stripe.event_retry", event, event.type, why=event.why, **self.by)
        return event


class StripeDayOut(serializers.ModelSerializer[StripeReconciliationDay]):
    """A day's reconciliation: last check, counts, open differences and last error."""

    id = serializers.CharField(source="pk")
    charge_count = serializers.IntegerField(source="charges")
    invoice_count = serializers.IntegerField(source="invoices")
    event_count = serializers.IntegerField(source="events")
    difference_count = serializers.IntegerField(source="differences")

    class Meta:
        model = StripeReconciliationDay
        fields = ("id", "day", "checked_at", "charge_count", "invoice_count", "event_count",
                  "difference_count", "last_error")  # fmt: skip


class OperatorStripeDayViewSet(CrossTenantViewSet):
    """Reconciliation status by day; the last thirty days are checked every night."""

    area = "billing"
    serializer_class, rows, audit_action = StripeDayOut, StripeReconciliationDay.objects.all(), "stripe"
