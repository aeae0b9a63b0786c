"""Collecting through Stripe over the API: differences, events and compared days; for operators."""

from django.db.models import QuerySet
from rest_framework import serializers

from billing.domain.stripe_compare import Kind
from billing.models import EventState, StripeDay, StripeDifference, StripeEvent
from tenants.api.filters import Filter
from tenants.api.operators import AllTenants


class StripeDifferenceOut(serializers.ModelSerializer[StripeDifference]):
    """Where our books, Stripe's and the ledger differ about one payment. Amounts are whole coins, as each counts."""

    day = serializers.DateField(source="day.day")
    kind = serializers.ChoiceField(choices=[each.value for each in Kind])
    ref = serializers.CharField(help_text="The payment, or the invoice at Stripe that nobody here knows.")
    says = serializers.CharField(help_text="What it means, for people.")
    next = serializers.CharField(help_text="What to do about it.")
    theirs = serializers.IntegerField(
        allow_null=True, help_text="Stripe's integer; it counts some currencies its own way."
    )
    back = serializers.IntegerField(
        allow_null=True, help_text="What of it went back, by a refund or a dispute."
    )
    why = serializers.CharField(help_text="Why it was acknowledged.")

    class Meta:
        model = StripeDifference
        fields = (
            *("id", "day", "kind", "ref", "says", "next", "currency"),
            *("ours", "theirs", "booked", "back", "found_at", "seen_at"),
            *("acknowledged_at", "acknowledged_by", "why"),
        )


class OpsStripeDifferences(AllTenants):
    """Differences that are still there; those that a person acknowledged wait for nobody."""

    serializer_class, rows, visit = StripeDifferenceOut, StripeDifference, "stripe"
    sorts = ("id", "-id")
    filters = {"kind": Filter("kind", choices=tuple(each.value for each in Kind))}

    def get_queryset(self) -> QuerySet[StripeDifference]:
        return StripeDifference.objects.select_related("day")


class StripeEventOut(serializers.ModelSerializer[StripeEvent]):
    """What Stripe says happened, and what became of it. It is looked up there; its body is not kept."""

    state = serializers.ChoiceField(choices=EventState.choices)
    why = serializers.CharField(help_text="What came of it, or why it waits.")
    found = serializers.BooleanField(help_text="It never reached us, and was found in Stripe's list.")

    class Meta:
        model = StripeEvent
        fields = ("id", "type", "object_id", "api_version", "created", "received_at", "found", "state", "why")


class OpsStripeEvents(AllTenants):
    """Events. Those that wait for a person are `state=parked`."""

    serializer_class, rows, visit = StripeEventOut, StripeEvent, "stripe"
    sorts = ("-id", "id")
    filters = {"state": Filter("state", choices=tuple(EventState.values)), "type": Filter("type")}


class StripeDayOut(serializers.ModelSerializer[StripeDay]):
    """A day, and when it was compared last."""

    class Meta:
        model = StripeDay
        fields = ("id", "day", "checked_at", "charges", "invoices", "events", "differences", "trouble")


class OpsStripeDays(AllTenants):
    """Days whose invoices are compared each night."""

    serializer_class, rows, visit = StripeDayOut, StripeDay, "stripe"
    sorts = ("-id", "id")
