"""Corrections of what was charged: proposed, looked at and approved by operators."""

from typing import Any, ClassVar

from django.db.models import Prefetch, QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.amounts import MoneyOut, hourly, money
from billing.models import Correction, CorrectionShare, PriceVersion
from billing.models.corrections import CorrectionKind, CorrectionStatus, ShareStatus
from billing.services import prices
from billing.services.corrections import approving, proposing
from broker.api.all_leases import Named
from broker.models import Lease
from tenants.api.fields import Strict
from tenants.api.filters import Filter
from tenants.api.operators import AllTenants
from tenants.api.views import shape
from tenants.services import walls

LONGEST_REASON, LONGEST_PRICE, SEAL, DIGITS = 150, 24, 64, 18


class ChangeOut(serializers.Serializer[Any]):
    """What one line changes by: of a final invoice by a credit note, of an open month by charges; before tax."""

    invoice = serializers.CharField(allow_blank=True)
    number = serializers.CharField(allow_blank=True)
    month = serializers.CharField()
    line = serializers.IntegerField(help_text="Its number; 0 where there is none yet.")
    project = serializers.CharField()
    offering = serializers.CharField()
    price_version = serializers.CharField()
    leases = serializers.IntegerField()
    unit_seconds = serializers.IntegerField()
    before = MoneyOut()
    after = MoneyOut()
    tax = MoneyOut(help_text="That goes with it; of an open month it is worked out when that is closed.")
    final = serializers.BooleanField()


class ShareOut(serializers.ModelSerializer[CorrectionShare]):
    """What it changes for one tenant."""

    tenant = Named()
    amount = serializers.SerializerMethodField(help_text="Before tax; less than nought gives back.")
    status = serializers.ChoiceField(choices=[each.value for each in ShareStatus])
    changes = serializers.SerializerMethodField()

    class Meta:
        model = CorrectionShare
        fields = ("tenant", "amount", "status", "settled_at", "trouble", "changes")

    @extend_schema(responses=MoneyOut)
    def get_amount(self, share: CorrectionShare) -> dict[str, str]:
        return money(share.minor, share.correction.currency)

    @extend_schema(responses=ChangeOut(many=True))
    def get_changes(self, share: CorrectionShare) -> list[dict[str, Any]]:
        currency = share.correction.currency
        return [
            {
                **{name: each[name] for name in
                   ("invoice", "number", "month", "line", "project", "offering", "leases", "unit_seconds", "final")},
                "price_version": str(each["version"]),
                **{name: money(each[name], currency) for name in ("before", "after", "tax")},
            }
            for each in share.diff
        ]  # fmt: skip


class CorrectionOut(serializers.ModelSerializer[Correction]):
    """What should have been charged otherwise. Nothing is booked before others than its author approved it."""

    lease = serializers.CharField(source="lease_id")
    price_version = serializers.CharField(source="price_version_id", allow_null=True)
    per_hour = serializers.SerializerMethodField(help_text="What the price should have been.")
    amount = serializers.SerializerMethodField(
        help_text="What all lines change by, whichever way, before tax."
    )
    needs_two = serializers.BooleanField(help_text="Whether two others have to approve it.")
    seal = serializers.CharField(
        help_text="Of the diff: who approves it names it, so that it is what they saw."
    )
    status = serializers.ChoiceField(choices=[each.value for each in CorrectionStatus])
    kind = serializers.ChoiceField(choices=[each.value for each in CorrectionKind])
    shares = ShareOut(many=True)

    class Meta:
        model = Correction
        fields = ("id", "kind", "lease", "charge", "price_version", "per_hour", "since", "until", "reason", "amount",
                  "needs_two", "seal", "status", "author", "proposed_at", "approver", "approved_at", "second_approver",
                  "second_approved_at", "closed_at", "shares")  # fmt: skip

    @extend_schema(responses=MoneyOut(allow_null=True))
    def get_per_hour(self, correction: Correction) -> dict[str, str] | None:
        nano = correction.nano_per_hour
        return None if nano is None else hourly(nano, correction.currency)

    @extend_schema(responses=MoneyOut)
    def get_amount(self, correction: Correction) -> dict[str, str]:
        return money(correction.minor, correction.currency)


class LeaseCorrectionWanted(Strict):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    charge = serializers.BooleanField(default=False, help_text="True charges more; else it is given back.")
    reason = serializers.CharField(max_length=LONGEST_REASON, help_text="The tenant reads it.")


class PriceCorrectionWanted(Strict):
    per_hour = serializers.CharField(
        max_length=LONGEST_PRICE, help_text="What it should have been, such as 3.79."
    )
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    reason = serializers.CharField(max_length=LONGEST_REASON, help_text="Tenants read it.")


class CorrectionDecision(Strict):
    status = serializers.ChoiceField(choices=["approved", "withdrawn"])
    seal = serializers.CharField(
        max_length=SEAL, required=False, default="", allow_blank=True, help_text="Of the diff you saw."
    )


def with_shares(corrections: QuerySet[Correction]) -> QuerySet[Correction]:
    """Have what it is for each tenant at hand; one query more."""
    shares = CorrectionShare.objects.select_related("tenant", "correction").order_by("tenant__name")
    return corrections.prefetch_related(Prefetch("shares", shares))


class OpsCorrections(AllTenants):
    """Corrections of charges."""

    serializer_class, rows, visit = CorrectionOut, Correction, "corrections"
    sorts: ClassVar[tuple[str, ...]] = ("-id", "id")
    filters = {
        "status": Filter("status", choices=tuple(CorrectionStatus.values)),
        "lease": Filter("lease_id"),
    }

    def get_queryset(self) -> QuerySet[Correction]:
        return with_shares(Correction.objects.all())

    @extend_schema(request=CorrectionDecision, responses=CorrectionOut, filters=False)
    def update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Approve what you saw, by its seal, or withdraw it. What has changed since is refused: nothing is booked."""
        with walls.as_staff():
            found: Correction = self.get_object()
        asked = shape(CorrectionDecision, request)
        if asked["status"] == "approved":
            approving.approve(found, seen=asked["seal"], actor=self.actor, now=self.now)
        else:
            proposing.withdraw(found, actor=self.actor, now=self.now)
        return self.told(found.pk)

    def told(self, pk: str) -> Response:
        with walls.as_staff():
            return Response(CorrectionOut(with_shares(Correction.objects.filter(pk=pk)).get()).data)


class OpsLeaseCorrections(OpsCorrections):
    """A correction of one lease."""

    @extend_schema(request=LeaseCorrectionWanted, responses=CorrectionOut, filters=False)
    def update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Propose that seconds of a lease should, or should not, have been charged; the answer is the diff."""
        with walls.as_staff():
            lease = self.found(Lease.objects.filter(pk=kwargs["pk"]))
        asked = shape(LeaseCorrectionWanted, request)
        why = asked.pop("reason")
        return self.told(proposing.of_lease(lease, **asked, why=why, actor=self.actor, now=self.now).pk)

    def found(self, rows: QuerySet[Any]) -> Any:
        """Return the row, or say that there is none."""
        return get_object_or_404(rows)


def number_of(text: str) -> int:
    """Return the number that an address names; 0, which nothing has, for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS else 0


class OpsPriceCorrections(OpsLeaseCorrections):
    """A correction of what a price version should have cost."""

    @extend_schema(request=PriceCorrectionWanted, responses=CorrectionOut, filters=False)
    def update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Propose what a price should have been in a stretch of time, for all who were charged at it; with its diff."""
        with walls.as_staff():
            version = self.found(PriceVersion.objects.filter(pk=number_of(kwargs["pk"])))
        asked = shape(PriceCorrectionWanted, request)
        made = proposing.of_price(
            version,
            nano_per_hour=prices.nano_of(asked["per_hour"]),
            since=asked["since"],
            until=asked["until"],
            why=asked["reason"],
            actor=self.actor,
            now=self.now,
        )
        return self.told(made.pk)
