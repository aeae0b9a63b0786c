"""Operators' API of charge corrections: propose, review and approve."""

from typing import Any

from django.db.models import Prefetch
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from billing.models import Correction, TenantCorrection
from billing.models.corrections import CorrectionKind, CorrectionStatus, TenantCorrectionStatus
from billing.services.invoicing.corrections import correction_approvals, correction_proposals
from web.api.amounts import AmountField, HourlyPriceField, MoneyOut, money_out
from web.api.operators.base_views import CrossTenantViewSet, NamedOut, OperatorAct, require_field
from web.api.serializer_fields import StrictSerializer
from web.http.filters import QueryFilter

MAX_REASON_LENGTH, MAX_PRICE_LENGTH, SEAL_LENGTH = 150, 24, 64


class LineChangeOut(serializers.Serializer[Any]):
    """Change of one line, before tax.

    A final invoice is changed by a credit note, an open month by charges.
    """

    invoice = serializers.CharField(allow_blank=True)
    number = serializers.CharField(allow_blank=True)
    month = serializers.CharField()
    line = serializers.IntegerField(help_text="Line number; 0 if not assigned yet.")
    project = serializers.CharField()
    offering = serializers.CharField()
    price_version = serializers.CharField()
    lease_count = serializers.IntegerField()
    unit_seconds = serializers.IntegerField()
    amount_before = MoneyOut()
    amount_after = MoneyOut()
    tax = MoneyOut(help_text="Tax on the amount; for an open month it is calculated when the month is closed.")
    final = serializers.BooleanField()


class TenantCorrectionOut(serializers.ModelSerializer[TenantCorrection]):
    """Effect of a correction on one tenant."""

    tenant = NamedOut()
    amount = AmountField(of="correction", help_text="Before tax; negative amounts are refunded.")
    status = serializers.ChoiceField(choices=[each.value for each in TenantCorrectionStatus])
    changes = serializers.SerializerMethodField()

    class Meta:
        model = TenantCorrection
        fields = ("tenant", "amount", "status", "settled_at", "last_error", "changes")

    @extend_schema_field(LineChangeOut(many=True))
    def get_changes(self, share: TenantCorrection) -> list[dict[str, Any]]:
        currency = share.correction.currency
        return [
            {
                **{name: each[name] for name in
                   ("invoice", "number", "month", "line", "project", "offering", "unit_seconds", "final")},
                "lease_count": each["leases"],
                "price_version": str(each["version"]),
                "amount_before": money_out(each["before"], currency),
                "amount_after": money_out(each["after"], currency),
                "tax": money_out(each["tax"], currency),
            }
            for each in share.diff
        ]  # fmt: skip


class CorrectionOut(serializers.ModelSerializer[Correction]):
    """Proposed change of charges.

    Nothing is booked before somebody other than its author has approved it.
    """

    lease = serializers.CharField(source="lease_id")
    price_version = serializers.CharField(source="price_version_id", allow_null=True)
    price_per_hour = HourlyPriceField(allow_null=True, help_text="Correct price of one unit.")
    amount = AmountField(help_text="Total absolute change of all lines, before tax.")
    needs_two = serializers.BooleanField(help_text="Whether two approvers are required.")
    seal = serializers.CharField(help_text="Hash of the preview; required for approval.")
    status = serializers.ChoiceField(choices=[each.value for each in CorrectionStatus])
    kind = serializers.ChoiceField(choices=[each.value for each in CorrectionKind])
    shares = TenantCorrectionOut(many=True)

    class Meta:
        model = Correction
        fields = ("id", "kind", "lease", "charge", "price_version", "price_per_hour", "since", "until", "reason",
                  "amount", "needs_two", "seal", "status", "author", "proposed_at", "approver", "approved_at",
                  "second_approver", "second_approved_at", "closed_at", "shares")  # fmt: skip


class LeaseCorrectionCreate(StrictSerializer):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    charge = serializers.BooleanField(default=False, help_text="True: add a charge; false: remove a charge.")
    reason = serializers.CharField(max_length=MAX_REASON_LENGTH, help_text="Visible to the tenant.")


class PriceCorrectionCreate(StrictSerializer):
    price_per_hour = serializers.CharField(
        max_length=MAX_PRICE_LENGTH, help_text="Correct price per hour, for example 3.79."
    )
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    reason = serializers.CharField(max_length=MAX_REASON_LENGTH, help_text="Visible to tenants.")


class CorrectionDecision(StrictSerializer):
    status = serializers.ChoiceField(choices=["approved", "withdrawn"])
    seal = serializers.CharField(
        max_length=SEAL_LENGTH,
        required=False,
        default="",
        allow_blank=True,
        help_text="Hash of the preview you reviewed.",
    )


class OperatorCorrectionViewSet(CrossTenantViewSet):
    """Corrections of charges."""

    area = "billing"
    serializer_class, audit_action = CorrectionOut, "corrections"
    rows = Correction.objects.prefetch_related(
        Prefetch("shares", TenantCorrection.objects.select_related("tenant", "correction").order_by("tenant__name"))
    )
    filters = {
        "status": QueryFilter("status", choices=tuple(CorrectionStatus.values)),
        "lease": QueryFilter("lease_id"),
    }

    @OperatorAct(CorrectionDecision)
    def partial_update(self, correction: Correction, body: dict[str, Any]) -> Correction:
        """Approve what you saw, by its seal, or withdraw it.

        A correction that has changed since is refused, and nothing is booked.
        """
        if require_field(body, "status") == "approved":
            return correction_approvals.approve_correction(correction, seen=body.get("seal", ""), **self.by)
        return correction_proposals.withdraw_correction(correction, **self.by)
