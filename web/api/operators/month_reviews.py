"""Operators' API of months that are over and not closed yet."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from billing.models import BillingPeriod
from billing.services.invoicing.month_close import month_reviews
from billing.services.invoicing.month_close.month_reviews import ReviewedMonth, ReviewState
from web.api.amounts import MoneyOut, money_out
from web.api.operators.base_views import TENANT_FILTER, CrossTenantViewSet, NamedOut, OperatorAct, require_field
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter


class MonthReviewOut(serializers.Serializer[Any]):
    """A month on its way to a final invoice, with its draft."""

    id = serializers.CharField(source="month.pk")
    tenant = NamedOut(source="month.tenant")
    month = serializers.CharField(source="month.label")
    state = serializers.ChoiceField(choices=[each.value for each in ReviewState])
    closes_at = serializers.DateTimeField(allow_null=True, help_text="Null while it is held.")
    invoice = serializers.CharField(source="draft.pk", allow_null=True, default=None, help_text="Its draft.")
    total = serializers.SerializerMethodField(help_text="Of the draft.")
    held_reason = serializers.CharField(source="month.held_reason")
    decided_by = serializers.CharField(source="month.decided_by")
    blocked_reason = serializers.CharField(source="month.blocked_reason")

    @extend_schema_field(MoneyOut(allow_null=True))
    def get_total(self, reviewed: ReviewedMonth) -> dict[str, str] | None:
        draft = reviewed.draft
        return money_out(draft.total, draft.currency) if draft else None


class MonthReviewChange(StrictSerializer):
    state = serializers.ChoiceField(
        choices=["held", "approved", "review"], help_text="`review` withdraws a hold or an approval."
    )
    reason = serializers.CharField(max_length=150, required=False, help_text="Of a hold.")


class OperatorMonthReviewViewSet(CrossTenantViewSet):
    """Months of all tenants that are over and have no final invoice yet."""

    area = "billing"
    serializer_class, audit_action = MonthReviewOut, "month-reviews"
    rows = BillingPeriod.objects.select_related("tenant")
    filters = TENANT_FILTER | {"month": QueryFilter("label")}

    def get_queryset(self) -> Any:
        return month_reviews.open_reviews(self.now).order_by()

    def prepare(self, rows: list[Any]) -> list[Any]:
        return month_reviews.with_drafts(rows, now=self.now)

    @OperatorAct(MonthReviewChange)
    def partial_update(self, month: BillingPeriod, body: dict[str, Any]) -> BillingPeriod:
        """Hold a month for a reason, approve it, or withdraw either."""
        state = require_field(body, "state")
        if state == "held":
            reason = require_field(body, "reason", fix="Send why the month is held.")
            return month_reviews.hold_month(month, why=reason, **self.by)
        decide = month_reviews.approve_month if state == "approved" else month_reviews.release_month
        return decide(month, **self.by)
